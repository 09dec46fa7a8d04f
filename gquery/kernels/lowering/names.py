"""What a module's text shares with who loads its machine code. Nothing is imported: a kernel from the cache is loaded alone."""

ENTRY = "kernel"
"""The function of a module that is called from outside."""

LINKED = "\n; ---- linked with what stands above ----\n"
"""Stands between the modules in a text: that of a kernel, and those that it needs."""

DRAFT = "; a draft"
"""The first line of a module of which a processor's compiler makes a draft."""
