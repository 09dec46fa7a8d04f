"""Queries written and generated, beside DuckDB on every target."""
