"""Typed expressions and the types that they have.

In come a type's name and parts, out go frozen nodes: `types` has the SQL types and the physical types that carry them,
`expr` the nodes, `exact` the keys that tell every two values apart. Knows no function, plan, column or device.
"""
