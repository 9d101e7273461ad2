"""Migration from ZooKeeper mode to KRaft: a cluster's stored metadata as the first metadata image of a quorum.

The metadata of a standalone broker from before KRaft is migrated in the same way.
"""
