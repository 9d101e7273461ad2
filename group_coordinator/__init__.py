"""Groups of consumers: their members, rebalances, assignments and committed offsets, as a replicated state machine.

A group belongs to the partition of ``__consumer_offsets`` that its id hashes to. The leader of the partition is the group's
coordinator. ``coordinator`` has the requests, the waits and the loops; the rules are plain functions on a *shard*.

A group id is of one group, which is one of four kinds (``group``):

=============  ================  ==================================  ================================================
kind           module            who assigns partitions              state
=============  ================  ==================================  ================================================
ClassicGroup   classic_group     the leader, one of the clients      a durable ``Generation``, and a soft rebalance
ConsumerGroup  consumer_group    the coordinator (KIP-848)           one immutable value, durable as a whole
ShareGroup     share_group       the coordinator (KIP-932)           one immutable value, durable as a whole
StreamsGroup   streams_group     nobody here                         the keys of its records
=============  ================  ==================================  ================================================

A shard
-------

A shard (``shard``) is one such partition that this broker leads. A request becomes records and a response:

1. The rules check the request against the present state: ``membership`` (classic members), ``consumer_membership`` (KIP-848),
   ``share_heartbeat`` (KIP-932), ``offsets``, ``transactional``, ``expiry``.
2. ``write`` appends the records as one batch, and replays them in the same plain function. If the log refuses, nothing has
   changed, and the client gets the error.
3. The response waits until the high watermark has passed the last record that the group depends on.

A load replays the partition from its start, on this broker after a restart or on another one. It gives the same state. Until
it ends, requests are answered with COORDINATOR_LOAD_IN_PROGRESS. When the partition moves away, the shard is dropped, and
all who wait for it get NOT_COORDINATOR.

Durable and soft
----------------

=======  ===================================  =====================================================================
part     module                               content
=======  ===================================  =====================================================================
durable  ``generation`` (Generation)          of a classic group the last completed rebalance: members, protocol,
                                              assignments
durable  ``consumer_group`` (ConsumerGroup)   of a consumer group everything: epoch, members, target assignment, and
                                              how far each member has come
durable  ``share_group`` (ShareGroup)         of a share group everything but the states of records, which the share
                                              coordinator keeps
durable  ``committed_offsets`` (OffsetTable)  the last commit per group, topic and partition, and the commits of
                                              transactions that are open
soft     ``live_group`` (LiveGroup)           the members of a classic group as this coordinator knows them, the state,
                                              and a generation that has begun and has no assignments yet
soft     ``timers``, ``waiter``               deadlines by name; responses that wait
soft     ``timeline``                         the last events of each group, for people
=======  ===================================  =====================================================================

Durable state changes by replay alone. A classic rebalance is soft until its assignments are there: it is made of clients that
wait on connections, and these do not outlive the coordinator. A record per join would cost an append for what nobody can use.
A consumer group has nothing to wait for, so every step of it is a record, and the next coordinator goes on where this one was.

A rebalance of a classic group
------------------------------

====================  ===============================  ============================================================
state                 timers                           what ends it
====================  ===============================  ============================================================
Empty                 none                             a member joins
PreparingRebalance    ``join``: the longest rebalance  all members wait and none is pending, or the time is up;
                      timeout of the members           who has not come is dropped, unless it is static
CompletingRebalance   ``sync``: the same time          the leader's assignments are written: Stable
Stable                ``sync``; ``session`` of each    a member joins, leaves, expires or changes what it offers; the
                      member                           leader joins again
====================  ===============================  ============================================================

The first rebalance of an empty group may wait for more members (``group.initial.rebalance.delay.ms``). The events that end
Stable lead back to PreparingRebalance, from CompletingRebalance as well. When ``sync`` is due, members that never asked for
their assignment are removed. If no member is left, the next generation is Empty, and its record is written.

A restart loses pending members, joins and syncs that wait, a generation without assignments, and the rest of each session.
It is safe, because no assignment leaves before its record is committed. The successor starts from the last durable generation
and gives each of its members a fresh session. Clients find out by UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION and join again.

A rebalance of a consumer group
-------------------------------

Nobody waits: each heartbeat is answered at once, and says what its member is to do next.

===========  ==========================================  ==========================================================
state        meaning                                     what ends it
===========  ==========================================  ==========================================================
Empty        no members                                  a member joins
Assigning    the epoch of the group is newer than that   the next heartbeat after ``group.consumer.assignment.
             of the target assignment                    interval.ms`` makes the target (``target_assignments``)
Reconciling  a member is not at the target yet           each heartbeat takes its member a step (``current_assignment``):
                                                         first it gives partitions up, then it gets those that are free
Stable       every member has its part of the target     a member joins, leaves, expires or reads other topics; topics
                                                         change; an expression matches others (``expression_refresh``)
===========  ==========================================  ==========================================================

What ends Stable raises the epoch, as do changes in the other states. A partition has an owner until the client has said that it
has given it up; nobody else gets it before. Each member has a timer ``session``, set anew by every heartbeat, and a timer
``revocation`` while it has partitions to give up, for its rebalance timeout. Whoever is late is removed. A load begins all of
them anew. A target that takes long is made in steps beside other work, and written in several batches, its epoch last.

Members with the classic protocol may be in a consumer group (``classic_members``): the first member of KIP-848 that joins a
classic group makes a consumer group of it (``upgrade``), and the last one that goes makes it classic again (``downgrade``). An
empty group is of the kind whose member joins next (``conversion``).

A share group
-------------

The members of a share group read the same partitions together (KIP-932), so nobody has to give anything up, and a member goes to
each target at once. What holds a partition up is its state, which the share coordinator keeps (``share_state_partitions``):

1. A heartbeat finds partitions of its member's topics that are neither initialized nor asked for, and writes them as
   *initializing*.
2. Once that is committed, the share coordinator is asked to begin with them (``share_state_requests``), beside the heartbeats.
3. What it has begun is written as *initialized*. What it refuses is taken out, and begins again with the next heartbeat.
4. The next heartbeat finds initialized partitions that are in nobody's target (``share_states``), and raises the group's epoch.

A deletion goes the other way: the topics are *deleting* until the share coordinator has deleted their states, and the group goes
after that. Start offsets are altered by beginning anew (``share_offsets``). What is asked for one group has its turn.

Offsets
-------

A commit is one record per partition. In a classic group it comes from a member of the current generation, in a consumer group
from a member at its epoch (``consumer_commits``), or from a client without one while the group is Empty or unknown. A commit
inside a transaction is written at once, and kept apart until the end marker. A commit marker takes it over, unless a plain
commit has come since; an abort marker drops it. Readers that ask for stable offsets get UNSTABLE_OFFSET_COMMIT meanwhile.

Offsets expire ``offsets.retention.minutes`` after the group became Empty. The time counts from the commit where the group
never had members, or where they no longer subscribe to the topic. Nothing expires during a classic rebalance. A group without
members goes with its last offset (``expiry``). A change of the group's kind leaves its offsets as they are.

Record types
------------

===========  =====================================  =======================================================================
key version  record                                 what replay does
===========  =====================================  =======================================================================
0, 1         OffsetCommit (0: a legacy form)        sets the commit of a partition, in its transaction if it has one
2            GroupMetadata                          replaces the generation; a tombstone ends the group, but while it has
                                                    offsets it stays as a *simple* one
3            ConsumerGroupMetadata                  sets the group's epoch, and the hash of its topics
4            ConsumerGroupPartitionMetadata         notes that there is one, of Kafka 4.0: the next change removes it
5            ConsumerGroupMemberMetadata            sets a member's subscription
6            ConsumerGroupTargetAssignmentMetadata  sets the epoch of the target assignment, which makes its parts valid
7            ConsumerGroupTargetAssignmentMember    sets a member's part of the target
8            ConsumerGroupCurrentMemberAssignment   sets a member's epoch and state, the partitions that it has, and those
                                                    that it is to give up
16           ConsumerGroupRegularExpression         sets the topics that an expression stands for
10           ShareGroupMemberMetadata               sets a member's subscription
11           ShareGroupMetadata                     sets the group's epoch, and the hash of its topics
12, 13       ShareGroupTargetAssignment...          as 6 and 7
14           ShareGroupCurrentMemberAssignment      sets a member's epoch, and the partitions that it reads
15           ShareGroupStatePartitionMetadata       sets which partitions are initializing and which initialized, and of which
                                                    topics the states are deleted
19           StreamsGroupMemberMetadata             adds a member
17, 20-23    epochs, assignments, topology          keeps the key, as 19 does: the group exists while a key of it has a value
===========  =====================================  =======================================================================

A tombstone takes back what its key had set. An end marker, a control record, ends the producer's open commits. A record of
an unknown type or version is skipped and counted; a batch with a wrong CRC is not, and its partition is not served.

The records of a change have Kafka's order (``consumer_group_records``, ``share_group_records``). Records of Streams groups come
from other brokers. Their members are not served: the group keeps its offsets, and refuses members of other protocols while it has
members of its own.

Two protocols in one group
--------------------------

A group id is of one group, which is a classic or a consumer group. It changes over while members are connected, so that clients
change one by one. ``group.consumer.migration.policy`` says in which directions.

====================  =========================================================  ==============================================
module                event                                                      effect on members
====================  =========================================================  ==============================================
``upgrade``           a member of the consumer protocol joins a classic group    classic ones keep their partitions and join
                                                                                 again
``classic_members``   a classic member joins a consumer group                    it gets partitions by SyncGroup, from the
                                                                                 coordinator
``downgrade``         the last member of the consumer protocol goes, and others  they join again, and one of them leads
                      stay
``conversion``        a member joins an empty group of the other protocol        the records of the old group go
====================  =========================================================  ==============================================

All records of a change are one batch, and offsets stay as they are.

The rules
---------

1. Append and replay are one plain function, so no other task sees the one without the other.
2. Nothing but replay changes durable state, so that every leader of the partition gets the same state.
3. Every response, to reads too, waits for the high watermark. Otherwise a client sees what a change of leader undoes.
4. Any subset of the records, in their order, is understood: compaction may have taken others away.
5. Nothing in a shard reads a clock, waits or does I/O; the time comes in as a ``CoordinatorTime``.
6. Timers do not fire straight after the loop stood still: no member could be heard meanwhile, so all get that time.
7. An election of the same broker keeps the shard, and with it the rebalance that no record has.
8. A partition of a consumer group has one owner at most, assigned or pending revocation (``ConsumerGroup.owners``).
9. What takes longer than some milliseconds is done in steps, and looks whether the group is at the same epoch after each.
"""
