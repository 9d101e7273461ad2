"""Partitions as a cluster sees them: who leads, who is in sync, what consumers may see.

``Partition`` adds leadership and the high watermark to a ``log.PartitionLog``; while it leads, a ``LeaderRole`` knows its
followers and the in-sync replicas (``isr``), whose changes ``AlterPartitionManager`` takes to the controller.
``ReplicaManager`` holds all of this broker's partitions and changes them as the controller says. ``MetadataCache`` is what was
published of the whole cluster. ``Reads`` answers fetches of consumers and followers, and ``FetchSessionCache`` remembers what
each of them fetches (KIP-227). ``BrokerClient`` sends requests to other brokers.

A partition with one replica has no followers, and does no work for any: its high watermark follows the log's end.
"""
