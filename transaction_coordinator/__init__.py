"""The transaction coordinator: transactional ids, their producers, and the ends of transactions (KIP-98, KIP-360, KIP-890).

A transactional id belongs to the partition of ``__transaction_state`` that it hashes to. The leader of the partition is its
coordinator. ``coordinator`` has the requests, the waits and the loops.

=========================  =======================================================================================
``transaction``            the state of one id, and its transitions as pure functions, with a picture of them
``shard``                  the ids of one partition as a replicated state machine
``records``                the one record type: the id is the key, its whole state the value; a tombstone forgets it
``ending``                 writes the end markers to the leaders of the partitions
``add_partitions_to_txn``  how the leader of any partition asks the coordinator, here or on another broker
``describe``               DescribeTransactions and ListTransactions; ``id_pattern`` is their filter by name
=========================  =======================================================================================

A change of state
-----------------

A transition makes a new ``Transaction`` of the known one, or raises a ``KafkaError``. The shard appends it as a record and
then takes it over, without waiting in between. The response waits until the record is committed. A new leader gets the same
states by replay of the records. Only ``last_producer_epoch`` is not in them, as in Kafka.

========================  ========================================================================================
state                     meaning
========================  ========================================================================================
Empty                     the id has a producer, and no transaction yet in this epoch
Ongoing                   partitions have joined; it ends by EndTxn, by its timeout or by a new producer
PrepareCommit,            decided: the partitions are in the record, the markers are not all written
PrepareAbort
CompleteCommit,           all markers are written; the next transaction may begin
CompleteAbort
========================  ========================================================================================

Epochs and fencing
------------------

A producer is a producer id with an epoch, and the highest epoch is the only one that may go on.

- InitProducerId gives the next epoch, so the process before it is fenced. An open transaction is aborted first, under a
  higher epoch, and the caller asks again after CONCURRENT_TRANSACTIONS.
- A producer that resumes names the id and epoch that it had (KIP-360). If its response was lost, it comes with the epoch
  before the last bump, and gets the same answer again.
- Under transactions V2 (KIP-890) every end bumps the epoch. The markers carry the new one, so a delayed request of one
  transaction cannot get into the next. The leader of a partition adds it to the transaction for the client; for classic
  clients the leader verifies that it was added.
- When the epochs of a producer id are used up, a new producer id takes over with epoch 0.
- Markers carry the leader epoch of this partition. A partition refuses those of an older coordinator, which then gives up.

How a transaction ends
----------------------

1. EndTxn writes PrepareCommit or PrepareAbort. Its response leaves when this record is committed: that is the decision.
2. A task of the shard writes the markers to the leaders of all partitions. It tries again until each has answered; a
   partition whose topic is gone needs none. A marker at a partition of ``__consumer_offsets`` counts the offsets too.
3. When all have the marker, the Complete record is written. A producer that begins its next transaction before that is told
   CONCURRENT_TRANSACTIONS.

A timeout is an abort under a new epoch. Ids that were not used for ``transactional.id.expiration.ms`` are forgotten.

After a crash
-------------

The new coordinator replays the records and begins again with every Prepare: it writes all markers anew, then Complete. A
marker that is written twice changes nothing. What was not decided stays Ongoing, until its producer or its timeout ends it.
A loss of power may leave a partition with a later epoch than the records have. Then what that epoch has open is aborted, and
the id goes on above it (``ending``).

The rules
---------

1. Nobody hears of a decision before it is committed, and no marker is written before that: a marker cannot be taken back.
2. A refusal is final for a producer. So it leaves only when the state it rests on is committed. On a replicated partition the
   state is written once more: a broker that lost the partition without knowing cannot commit it.
   CONCURRENT_TRANSACTIONS leaves at once, because the producer asks again.
3. Producers wait for as long as their transaction may take, not for a shorter fixed time: there is no other coordinator.
4. An election of the same broker keeps the shard, so that no waiting client looks for another coordinator.
"""
