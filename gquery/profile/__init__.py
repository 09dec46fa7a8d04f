"""EXPLAIN: a query's plan and program as a tree, with what an analyzed run measured; printed as text, JSON or a page."""
