"""Server-side assignors of consumer groups (KIP-848): which member is to have which partitions."""
