"""Columns from Arrow and back, ownership, transfers."""
