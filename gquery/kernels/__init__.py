"""Kernels: the text of a loop, how expressions are written into it, and the machines that run it."""
