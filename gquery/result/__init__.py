"""What comes out of a query, in the form that was asked for.

Columns of a result go in; Arrow, pandas, NumPy, files (`output`, `outlets`), a printed table (`display`) or a single column
on its device (`result_column`) come out. Called by `api` and `shell`.
"""
