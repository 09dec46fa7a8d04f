"""Lowering: a kernel's statement nodes become the text of an LLVM module in one pass, since every value has a type already.

Nodes of `kernels.ir`, and the Python bodies of primitives and scalar functions, which are read as such nodes, go in; LLVM's
text comes out. `values` has the types, `assembler` writes instructions, `function` lowers a function's statements, `library`
has the primitives as LLVM functions, `module` puts a kernel together. Called by `kernels.targets`, which make machine code
of the text.
"""
