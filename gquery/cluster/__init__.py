"""A cluster: the ranks of a query are tasks of Dask's workers, each of which reads its own rows.

`client` is the side of the connection, `worker` that of a worker process; `tables` says what all agree on about a table, and
`fragments` cuts the run of a rank into tasks. What goes between processes is packed by `moving`; `engine` has them work alike.
"""
