"""Kernel text, primitives, targets, the cache of compiled kernels."""
