"""Tools for a KRaft quorum: its description, its voters, and its feature levels."""
