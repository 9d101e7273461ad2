"""``ottla spark run``: a pipeline over topics, declared in one TOML file and run by Spark's own ``kafka`` format."""
