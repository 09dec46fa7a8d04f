"""A runner of sqllogictest files, the format in which SQLite, DuckDB and others keep their tests: see `tests.slt.records`."""
