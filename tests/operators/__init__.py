"""Joins, groups, sorts and what they materialize."""
