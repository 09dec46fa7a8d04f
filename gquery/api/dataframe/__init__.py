"""The DataFrame API: `verbs` of relations and the `expression` s that they take, both written as SQL's own syntax tree.

A method of a relation makes the tree of one SELECT over it, and the binder makes the logical plan of that: there is one
way to plans, and names, types, grouping and errors are those of SQL.
"""
