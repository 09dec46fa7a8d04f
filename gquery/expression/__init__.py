"""Typed expressions and the types that they have.

In come a type's name and parts, out go frozen nodes: `types` has the SQL types and the physical types that carry them,
`expr` the nodes, `traverse` the recursion over them, `promotion` the types that several types have in common, `exact` the
keys that tell every two values apart, `facts` sizes and units. Knows no function, plan, column or device.
"""
