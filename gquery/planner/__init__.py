"""From a logical plan to a program of pipelines.

A `logical` plan goes in; `optimizer` rewrites it by `rules`; `lower` and the lower_ modules cut it into the stages of a
`physical.Program`, over a `lowering.Lowering`, with `aggregates` and `layouts` for how state and keys are laid out; `preview`
tells how many rows a look at a result takes. Knows no running state: `operators` write the kernels of a pipeline, `execution`
runs it.
"""
