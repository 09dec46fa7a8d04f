"""Every intrinsic in plain Python: what the python target runs, and what the bodies in `kernels.primitives` call where they are
imported.

Values are Python ints and floats (a pointer is a memoryview), so most primitives are one operator. Proved arithmetic does not
wrap here, because its result is proved to fit. The compiled targets have the same names in `targets.intrinsics`.
"""
