"""Functions, types and casts, each edge beside DuckDB; the .case files."""
