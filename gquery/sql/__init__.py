"""From SQL text to a logical plan: parsing, names, scopes, types."""
