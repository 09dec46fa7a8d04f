"""The shell and the notebook."""
