"""From a logical plan to a program of pipelines and their kernels."""
