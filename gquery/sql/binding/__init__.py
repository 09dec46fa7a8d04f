"""Parts of statements bound, a module each; `gquery.sql.bind` is the way in."""
