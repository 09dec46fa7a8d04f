"""Built-in kernels: those of whole-array operations, written by hand in the primitives that generated kernels call.

A NumPy or CuPy array goes in, one comes out, on the same device: `scans` (prefix sums, compaction), `gathers`,
`grouping`, `order` (sorting), `row_partition`, `text_extremes`. `define` makes a kernel of a function, `registry` names all
of them.
"""
