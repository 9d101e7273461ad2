"""The read model of a running broker, made of the parts in its own process."""
