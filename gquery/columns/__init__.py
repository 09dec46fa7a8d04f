"""Columns in memory: from Arrow, and back to Arrow.

Arrow arrays go in (`import_arrow`, from files by way of `assemble`), validated and owned where others could change them
(`ownership`); out come `table.Column`s with physical type, buffers, dictionary and `statistics`. `arrow` turns them
back, and `store` makes a table in memory a source. Knows no file, kernel or plan.
"""
