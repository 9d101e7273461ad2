"""The way out of ZooKeeper mode: the metadata of a cluster, or of a lone broker, as the image a quorum begins with."""
