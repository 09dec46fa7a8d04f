"""Parsing and binding: what is read, refused, and named in errors."""
