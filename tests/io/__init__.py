"""Files of each kind, whole and damaged."""
