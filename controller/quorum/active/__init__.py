"""The active controller of a quorum, which turns requests into metadata records and responses (KIP-631).

An operation is a plain function of the cluster's image, of which it changes nothing. Its records are replayed at once, and the
next operation sees the image that they make (``replay``); the response waits until the log has committed them. Models: Apache
Kafka's QuorumController and its managers (ReplicationControlManager, ClusterControlManager, ConfigurationControlManager, …).
"""
