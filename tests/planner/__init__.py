"""Plans: rules, properties, estimates, programs; golden plans."""
