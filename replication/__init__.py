"""Partitions as a cluster sees them: who leads, who is in sync, what consumers may see.

``Partition`` puts leadership, the in-sync replicas and the high watermark round a ``log.PartitionLog``;
``ReplicaManager`` holds all of this broker's partitions and changes them as the controller says, through the requests
LeaderAndIsr and StopReplica; ``MetadataCache`` is what UpdateMetadata says of the whole cluster; ``FetchSessionCache``
remembers what each consumer fetches (KIP-227). ``BrokerClient`` sends requests to other brokers.

With one broker every partition happens to have one replica, the leader: the high watermark follows the log's end.
"""
