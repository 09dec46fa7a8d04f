"""TPC-H, its runner and report, and the benchmarks."""
