"""Ranks: how they meet, and what moves between them."""
