"""``python -m gquery`` is the shell."""

from gquery.shell.main import main

if __name__ == "__main__":
    main()
