"""What users call: connections, relations, DB-API, data frames."""
