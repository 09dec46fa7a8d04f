"""Running programs: memory, threads, speculation, faults, interrupts."""
