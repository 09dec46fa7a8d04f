"""Partitions of a source, the devices that run them, and the order in which they do."""
