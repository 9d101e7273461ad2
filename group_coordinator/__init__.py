"""Consumer groups of the classic protocol: their members, rebalances and committed offsets, as a replicated state machine.

A group belongs to the partition of ``__consumer_offsets`` that its id hashes to. The leader of the partition is the group's
coordinator. ``coordinator`` has the requests, the waits and the loops; the rules are plain functions on a *shard*.

A shard
-------

A shard (``shard``) is one such partition that this broker leads. A request becomes records and a response:

1. ``membership``, ``offsets``, ``transactional`` or ``expiry`` checks the request against the present state.
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
durable  ``generation`` (Generation)          the last completed rebalance: members, protocol, assignments
durable  ``committed_offsets`` (OffsetTable)  the last commit per group, topic and partition, and the commits of
                                              transactions that are open
durable  ``modern``                           groups of newer protocols, as their records show them
soft     ``live_group`` (LiveGroup)           the members as this coordinator knows them, the state, and a generation
                                              that has begun and has no assignments yet
soft     ``timers``, ``waiter``               deadlines by name; responses that wait
soft     ``timeline``                         the last events of each group, for people
=======  ===================================  =====================================================================

Durable state changes by replay alone. A rebalance is soft until its assignments are there: it is made of clients that wait
on connections, and these do not outlive the coordinator. A record per join would cost an append for what nobody can use.

A rebalance
-----------

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

Offsets
-------

A commit is one record per partition. It comes from a member of the current generation, or from a client without one while the
group is Empty or unknown. A commit inside a transaction is written at once, and kept apart until the end marker. A commit
marker takes it over, unless a plain commit has come since; an abort marker drops it. Readers that ask for stable offsets get
UNSTABLE_OFFSET_COMMIT meanwhile.

Offsets expire ``offsets.retention.minutes`` after the group became Empty. The time counts from the commit where the group
never had members, or where they no longer subscribe to the topic. Nothing expires during a rebalance. A group without
members goes with its last offset (``expiry``).

Record types
------------

===========  =====================================  =======================================================================
key version  record                                 what replay does
===========  =====================================  =======================================================================
0, 1         OffsetCommit (0: a legacy form)        sets the commit of a partition, in its transaction if it has one
2            GroupMetadata                          replaces the generation; a tombstone ends the group, but while it has
                                                    offsets it stays as a *simple* one
3            ConsumerGroupMetadata                  notes the group's epoch
5            ConsumerGroupMemberMetadata            adds a member, with the topics that it names
6            ConsumerGroupTargetAssignmentMetadata  notes the epoch of the target assignment
8            ConsumerGroupCurrentMemberAssignment   notes how far a member has come to its assignment
16           ConsumerGroupRegularExpression         notes the topics that an expression stands for
10           ShareGroupMemberMetadata               adds a member
19           StreamsGroupMemberMetadata             adds a member
4, 7, 11-15  epochs, assignments, topology, ...     keeps the key, as 3 to 23 all do: the group exists while a key of it
17, 20-23                                           has a value
===========  =====================================  =======================================================================

A tombstone takes back what its key had set. An end marker, a control record, ends the producer's open commits. A record of
an unknown type or version is skipped and counted; a batch with a wrong CRC is not, and its partition is not served.

Records of newer groups (KIP-848, share, Streams) come from other brokers. Their members are not served: the group keeps its
offsets, and refuses classic members while it has members of its own. A consumer group loses these after one session.

For consumer groups of KIP-848 the pure part is here, and no request uses it yet: ``consumer_group`` and ``consumer_group_member``
are a group as a value that its records replace, ``consumer_group_records`` are those records in Kafka's order,
``current_assignment`` is the step of a member towards its target, and ``assignors`` make the targets.

The rules
---------

1. Append and replay are one plain function, so no other task sees the one without the other.
2. Nothing but replay changes durable state, so that every leader of the partition gets the same state.
3. Every response, to reads too, waits for the high watermark. Otherwise a client sees what a change of leader undoes.
4. Any subset of the records, in their order, is understood: compaction may have taken others away.
5. Nothing in a shard reads a clock, waits or does I/O; the time comes in as a ``CoordinatorTime``.
6. Timers do not fire straight after the loop stood still: no member could be heard meanwhile, so all get that time.
7. An election of the same broker keeps the shard, and with it the rebalance that no record has.
"""
