"""The shell: ``gquery``, ``gquery file.parquet``, ``gquery -c "SELECT 42"``.

`main` reads the command line, `script` cuts text into statements and dot commands, `Shell` runs them one by one,
`commands` holds the dot commands and `modes` the ways to write a result. `prompt` is the editor at a terminal, with
`completion` and history; `reports` is what single commands need. Data goes to stdout, all else to stderr.
"""
