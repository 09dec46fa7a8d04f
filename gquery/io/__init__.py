"""Sources of tables: what a Scan reads.

Paths, frames and arrays go in; a `columns.table.TableSource` comes out, which tells rows and statistics and loads columns.
`parquet` and `text` read files that `files` found and `watched` looks after. Of Parquet `footers` checked what `chunks` tells;
`row_groups` says by `extents` which row groups a query needs, and `parquet_rows` loads their columns with `parquet_reader`.
`memory` holds arrays of others, `column_cache` the columns that were loaded.
"""
