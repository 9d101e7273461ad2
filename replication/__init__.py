"""Partitions in a cluster: leaders and followers, in-sync replicas, and the records visible to consumers.

This is the page of the high watermark, the fences and the rules. Each module says its own part in full.

A partition here
----------------

A broker has one ``Partition`` for each of its replicas: a ``PartitionLog`` and a role. While it leads, ``leader`` is a
``LeaderRole``, which knows the followers by their fetches, and the in-sync replicas (ISR). On a follower ``leader`` is None, and
a ``Fetcher`` fetches from the leader. ``ReplicaManager`` holds all partitions and applies the controller's decisions.

========================  =======================================  ===========================================================
offset                    meaning                                  moves
========================  =======================================  ===========================================================
``log_start_offset``      the first offset that can be read        by retention and DeleteRecords, or after the leader's
``last_stable_offset``    every transaction below it has ended     with the high watermark, up to the first open transaction
``high_watermark``        everything below it is committed         by the replicas' progress; on a follower, after the leader's
``log_end_offset``        the offset of the next record            with each append; back only by a follower's truncation
========================  =======================================  ===========================================================

They stand in this order. A consumer reads up to the high watermark, or with ``read_committed`` up to the last stable offset. Only
a follower reads to the log's end. A consumer may read from a follower (KIP-392), up to the high watermark known there.

The high watermark
------------------

A follower that fetches at offset X has everything below X, so its fetch is also an acknowledgement. The watermark is the lowest
log end among the leader, the maximal ISR, and replicas that are caught up and about to join. With one replica it follows the
log's end. If ``flush.messages`` asks for a flush, the leader counts itself only up to the last one. While fewer than
``min.insync.replicas`` are in sync, the watermark stands still (KIP-966).

It never falls within a leader epoch: a leader never truncates, and a lower result is ignored. A new leader was in sync (unless
the election was unclean) and has every committed record, but its own watermark may lag. A fetch above it waits, and ListOffsets
returns OFFSET_NOT_AVAILABLE up to the start of the epoch (KIP-207). So the end that a consumer is told never moves back.

The in-sync replicas
--------------------

The leader knows two sets. The *committed* one is what the controller has confirmed. An append with acks=all, and the watermark,
need ``min.insync.replicas`` of it. The *maximal* one has every replica that may be in sync, however a proposed change ends. It
limits the high watermark. These are the rules of Kafka's ``PendingExpandIsr`` and ``PendingShrinkIsr`` (KIP-497).

So an unconfirmed proposal counts only where it holds the watermark back. A joining replica counts at once, because the controller
may already have taken it in, and may elect it. A leaving replica counts until its removal is confirmed.

Fences
------

====================  ===================================  ======================================================================
epoch                 grows with                           stale message it refuses
====================  ===================================  ======================================================================
``leader_epoch``      each election of the partition       states, stops, fetches, responses and proposals from before it
``partition_epoch``   each change of the partition         an older state after a newer one; a proposal made from an older state
``broker_epoch``      each registration of a broker        fetches from before a follower's restart; ISRs made of them (KIP-903)
``controller_epoch``  each controller in ZooKeeper mode    requests of a replaced controller; a quorum's records have one order
====================  ===================================  ======================================================================

Following
---------

A follower's position is its log: the end, and the newest leader epoch in it. ``follower`` applies a response in this order:

- It ignores the response unless offset and leader epoch are still those of the request.
- A *diverging epoch* says where that epoch ends in the leader's log (KIP-320, KIP-595). The follower truncates to where the logs
  surely agree, ignores the rest, above all the watermark, and compares again. A log without epochs is cut at its watermark.
- It checks the batches and appends them with the leader's offsets and epochs. A batch of a later epoch ends the append.
- It takes over the leader's high watermark, at most its own log end, and then the leader's log start.
- At OFFSET_OUT_OF_RANGE it asks where the leader's log starts and ends, and truncates to that end or restarts at that start.
- At FENCED_LEADER_EPOCH it stops until the controller sends a new state. Other errors only delay the partition they name.

Both sides keep a fetch session (KIP-227): requests name the partitions that changed, responses those with news. A partition read
to its end *rests* and announces its next change (``fetch_watches``), so a fetch costs what changed. It rests only for followers
in sync: each fetch of another one may change the ISR.

Waits
-----

=====================================  ==========================================================================================
wait                                   bound
=====================================  ==========================================================================================
a fetch with too few bytes             ``max_wait_ms`` of the request; a follower sends ``replica.fetch.wait.max.ms``
acks=all, DeleteRecords                ``timeout_ms`` of the request
a follower, for a response             ``replica.socket.timeout.ms``
a follower, after an error             ``replica.fetch.backoff.ms``; from 10 ms on, doubling up to that, while leaders change
a leader, for a silent follower        1.5 times ``replica.lag.time.max.ms``, then it proposes an ISR without that follower
a proposal, for the controller         none: it is sent again until the controller responds, or sends another state
=====================================  ==========================================================================================

What a crash loses
------------------

Roles, epochs and ISR are in memory only; the controller tells them again. ``replication-offset-checkpoint`` has the high
watermarks, up to ``replica.high.watermark.checkpoint.interval.ms`` old. A low one only delays: fetches raise a leader's, a
response a follower's. A high one would be wrong: after a truncation that is not flushed, a power loss may bring old records back.
So the checkpoint stays at or below such a truncation.

Unflushed records may be lost. The broker registers under a new epoch, leaves the ISR if others remain, and fetches what it lacks.
Committed records are lost only if all in-sync replicas lose power together, and ``flush.messages`` is not set.

Modules
-------

==========================================================  =====================================================================
``partition``, ``leader``, ``isr``                          a partition and its role; followers' progress; states of the ISR
``alter_partition``, ``isr_report``                         proposals to the controller, and their log lines
``replica_manager``, ``replica_publisher``                  all partitions of the broker; a quorum's deltas applied to them
``fetchers``, ``fetcher``, ``follower``                     one task per leader; its requests; what a response does
``fetch_session_handler``, ``older_fetch``, ``fetch_rate``  a fetcher's session, its requests to an older Kafka, its rate
``fetching``, ``delayed_fetch``, ``read_replica``           reading a fetch's partitions; its wait; the replica in a rack
``fetch_session``, ``fetch_watches``                        sessions; whom a partition notifies
``pending_visibility``                                      bytes that are to become visible
``waiters``, ``quotas``, ``log_dir_moves``                  waits for a watermark; throttling; moves between log directories
``broker_client``, ``peers``, ``controller_channel``        requests to other brokers, and to the controller
``transaction_marker_writer``, ``transaction_marker_…``     transaction markers: written here, sent to other leaders
``metadata_cache``, ``coordinator_…``                       the newest image; the coordinators' topics and loaded state
``inter_broker_protocol``, ``settings``, ``counters``       versions among brokers; settings; numbers for metrics
==========================================================  =====================================================================

Rules that hold
---------------

1. Only the controller changes a role, and never to a lower epoch. Otherwise two brokers could lead in one epoch.
2. The high watermark never goes back while a broker leads, and never passes the log's end. Consumers have read up to it.
3. A replica that may be elected holds the watermark back. So no possible leader lacks a committed record, whatever is lost.
4. A follower asks for an offset once it has all below, flushed if ``flush.messages`` is reached. The leader takes that as proof.
5. Logs are compared by leader epochs. A follower's watermark lags, and truncating to it loses committed records (KIP-101).
6. A wait is decided in the step that changes the partition, not when its task runs. By then other records may be at its offset.
7. A partition rests only if the next read could only say the same. It tells whoever rests, or a fetch would wait in vain.
8. Quotas delay, never refuse, and never delay a replica in sync. Otherwise a limit could shrink the ISR.
9. Changing state is a plain function, and only waiting is async. On one loop such a function is a transaction.
"""
