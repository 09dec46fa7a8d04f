"""The questions of db-benchmark (H2O): groups, joins and windows over one wide table of numbers and labels, in three engines.

The questions and the data are those of the public benchmark of that name, written anew here; figures are not comparable to
published ones. `data` makes the tables, `questions` says what is asked, `engines` runs it, `__main__` compares and reports.
"""
