"""Devices and the memory on them.

`device` allocates, copies and counts, for a CPU or one GPU; `buffer` is an immutable array with copies where it is used;
`transfer` copies to a GPU while the host goes on. A NumPy or CuPy array goes in, a `Buffer` comes out.
"""
