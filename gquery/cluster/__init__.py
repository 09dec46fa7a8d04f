"""A cluster: the ranks of a query run on Dask's workers, each of which reads its own rows.

`client` is the side of the connection, `worker` that of a worker process; `tables` says what all agree on about a table. Ranks
meet over the workers' connections (`direct`); where a worker is lost, `fragments` cuts their runs into tasks. What goes between
processes is packed by `moving`; `engine` has them work alike.
"""
