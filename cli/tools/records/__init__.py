"""Tools that read and write records: consume, produce, perf, trim."""
