"""Partitions of a source, the devices that run them, and the order in which they do.

A source's rows and the devices go in, row ranges with a device each come out (`partitioning`, `place`); `schedule` runs an
operator's sink over them and merges the states. Called by `execution`. Ranks, of which
each is a device and a thread, meet in the collectives of `transport`; frames go between them as `movable` makes them.
"""
