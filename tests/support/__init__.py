"""What tests share: oracles, generators, tables, simulators. No test stands here."""
