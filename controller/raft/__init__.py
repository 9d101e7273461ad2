"""The quorum's consensus (KRaft): who leads the metadata log, what is committed, and which nodes vote.

It is Raft as Apache Kafka 4.3 speaks it (KIP-595, KIP-630, KIP-853, KIP-996). Followers fetch; a leader pushes no records.

A pure step and its effects
---------------------------

=================  =================================================================================================
``node``           ``RaftNode.step(now, event)`` returns effects. It has no await, no clock, no I/O.
``events``         all that can happen to a node: a request, a response, a flush that ended, a tick
``effects``        all that it asks for, and the order in which that is performed
``quorum_state``   what it knows, and the ways between its roles (``election``, ``follower``, ``leader``)
``log_outline``    its log as far as it has to know it: offsets, epochs, snapshots, voters; no records
``driver``         gives the node its events, and performs its effects: timers, connections, workers
``storage``        the effects on the disk, performed on a ``MetadataLog`` (``metadata_log``)
=================  =================================================================================================

The split makes every order of events and every crash between two effects a test that takes milliseconds. The simulation in
``tests/simulation/raft`` runs the same node and the same storage without a loop.

The order of effects
--------------------

Effects are performed one after the other, in the order of the steps. Two of them hold up all behind them until they are on
stable storage: ``Persist`` of ``quorum-state``, and ``FinishSnapshot``. A flush runs beside the rest, and its end is an event.

============  =====================================  =====================================================================
step          effects, in order                      why
============  =====================================  =====================================================================
a vote        Persist, Respond                       A node that forgot its vote in a crash could vote twice.
candidacy     Persist, SendRequest (Vote)            It has voted for itself.
the leader    Append, Respond (waiting fetches),     Followers get records before the leader flushes, so that their disks
appends       Flush                                  work at the same time. The leader counts itself after its flush.
a follower    AppendFetched, Flush; after its end    A voter's fetch at an offset says that all below it is flushed.
fetches       SendRequest (Fetch)                    The leader counts it for the high watermark.
an election   HighWatermarkAdvanced, LeaderChanged   The controller claims the leadership when all records of earlier epochs
is won                                               are committed, and it has applied them.
============  =====================================  =====================================================================

A node counts as done what it has asked for, except for a flush. So the first error of the disk ends the driver.

On disk
-------

::

    __cluster_metadata-0/
        quorum-state                                 epoch, leader and vote; one line of JSON
        00000000000000000000.log                     a segment, with its indexes, as in any log
        00000000000000000023-0000000002.checkpoint   a snapshot of all below offset 23; the last record is of epoch 2
        ….checkpoint.part, ….checkpoint.deleted      one being written, one being removed; gone after a start
        00000000000000000000-0000000000.checkpoint   the voters that the node was formatted with; no node is sent it

A small file and a snapshot are written under another name, synced and renamed. There is no clean mark and no checkpoint of
offsets: a start recovers the log from its first segment, and nothing counts as flushed before it is flushed again.

The invariants
--------------

1. An epoch never falls, and a node votes once in it. A node that led in an epoch never votes for another in it, not even
   after a restart: otherwise two different records could have the same offset and epoch.
2. A record is committed when a majority of the newest voter set has flushed it and a record of the leader's own epoch.
3. The high watermark never falls, and nothing below it is truncated.
4. The log begins at 0, or a snapshot reaches to its start.
5. The newest voter set counts from its append, committed or not. One change runs at a time, so that two sets always share
   a voter in their majorities (``voter_changes``).

Differences from Kafka
----------------------

The leader counts its own log after the flush: a single voter would otherwise commit what a crash takes away. Followers of a
lost leader stand one after the other: two at once split the vote. A leader whose process is gone is replaced sooner, because
nothing can be heard of it any more. The modules name the other differences where they are, each with its reason.
"""
