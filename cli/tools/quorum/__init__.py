"""Tools for a KRaft quorum: its description, its voters, and the levels of features."""
