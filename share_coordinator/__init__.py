"""The share coordinator: what the leaders of share partitions keep of their delivery states (KIP-932).

The group, topic id and partition of a *share partition* hash to a partition of ``__share_group_state``, whose leader is its
coordinator. Only brokers ask it: the group's coordinator initializes, deletes and looks, the partition's leader reads and writes.

======================  ==========================================================================================
``state``               the state as a leader has it, and the ``ShareStateStore`` that keeps it
``client``              that store: the coordinator of each share partition, here by a call or over the network
``coordinator``         the requests, and the upkeep of the log
``shard``               the share partitions of one partition as a replicated state machine
``share_group_offset``  the state of one share partition, and its changes as pure functions
``batches``             the merge of batches
``records``             the records, and their encoding
======================  ==========================================================================================

The log
-------

A *snapshot* has the whole state of a share partition, and each *update* the batches that have changed since. After
``share.coordinator.snapshot.update.records.per.snapshot`` updates there is another snapshot. A tombstone of the snapshot forgets
the share partition. The topic is not compacted, because an update does not replace the one before: the coordinator deletes the
records below the oldest of the newest snapshots. A share partition that is idle would hold that back, so it gets a snapshot once
its last one is old.

The rules
---------

1. A change is appended and replayed in one plain function. What is told of a state waits until the log is committed.
2. Epochs fence. The group sets the state epoch, and a leader its leader epoch by reading first; a write under an older one is
   refused. So a leader that was replaced changes nothing, and a leader has to read again after the group's offsets were altered.
3. A write that is repeated changes nothing (``batches``). So the client may ask again after a lost response.
4. A snapshot counts for the deletion of older records only when it is committed.
"""
