"""The commands that change a cluster, and the two kinds of cluster that carry them out: ZooKeeper mode and a KRaft quorum.

This page says who decides, where the modules are, and what keeps an outdated node from doing harm. The pages of ``zookeeper``,
``quorum`` and ``raft`` say how each kind works.

Two kinds of cluster, one interface
-----------------------------------

The parts of a broker change the cluster through ``cluster``, and do not ask which kind it is. ``ClusterAccess`` has what every
part may ask for, ``ClusterMember`` adds the start and the run. ``ClusterCommands`` are the changes that clients ask for. A
broker of KRaft has none of these: it forwards the request to the active controller, in an envelope (KIP-590).

==================  ===============================================  ===================================================
question            ZooKeeper mode                                   KRaft
==================  ===============================================  ===================================================
the metadata is     a tree of nodes in ZooKeeper                     the log ``__cluster_metadata``
who decides         the broker that won the last election            the leader of the quorum, the *active* controller
any broker writes   configs, quotas, credentials, access rules,      nothing
                    tokens, topics that a client has named
a decision is       a conditional write to the store                 records that a majority has on stable storage
brokers learn by    requests of the controller; watches on nodes     reading the committed log
a broker is alive   while its session holds its node                 while it sends heartbeats
==================  ===============================================  ===================================================

Every broker carries the decisions out. Either kind ends in a ``ClusterDelta`` that ``MetadataCache.publish`` applies to the
broker's image. From there on nothing depends on the kind: replicas lead, follow or go in ``replication``. A lone broker is a
cluster of KRaft as well, with a quorum of one in its own process.

Where the modules are
---------------------

========================  ================================================================================================
``cluster``               the interface
``configs/``              which configs topics, brokers, groups and client metrics may have; pure
``producer_ids``          blocks of producer ids, requested from the controller before they are needed
``quorum/``               a broker's life in KRaft: registration, heartbeats, records that become deltas, snapshots
``quorum/active/``        the KRaft controller, standby or active
``raft/``                 the consensus below it: elections, the metadata log, voters
``zookeeper/``            a broker's life in ZooKeeper mode: session, registration, configs, access rules, tokens
``zookeeper/active/``     the controller of ZooKeeper mode: elections, decisions, requests to brokers
``zookeeper/nodes/``      the paths and the form of the store's nodes, and the loop that watches them
``zookeeper/state/``      the controller's copy of the cluster, read from the store and written to it
``zookeeper/store/``      the session at ZooKeeper, and the store of a lone broker before KRaft
``zookeeper/leaving/``    the way out of ZooKeeper mode: a tree of nodes becomes the first image of a quorum
========================  ================================================================================================

The rules that both controllers share are pure functions in ``metadata.rules``: elections of leaders, assignments, names.

What fences what
----------------

==================  ======================================================  ============================================
outdated            ZooKeeper mode                                          KRaft
==================  ======================================================  ============================================
controller          Its transactions check the version of the epoch's       A majority knows a later epoch of the log,
                    node, which an election raises. Brokers refuse          so nothing that it appends is committed by
                    requests with a controller epoch below the highest      it. Its responses wait for the commit.
                    they know.
view of a           A state is written on the condition that its node has   A leader names the leader epoch and the
partition           the known version. That version is the partition        partition epoch that it knows. Each change
                    epoch, which a leader names.                            raises the partition epoch.
life of a broker    Its broker epoch is the transaction id (zxid) of its    Its broker epoch is the offset of its
                    registration.                                           registration.
leader              Its leader epoch is below the one of the last           The same.
                    election, so followers and clients are refused.
==================  ======================================================  ============================================

A broker names its broker epoch in its requests to the controller. One of an earlier life is refused with STALE_BROKER_EPOCH.
In ZooKeeper mode the controller's requests name it, too: a restarted broker must not obey one for its earlier life.

The rules
---------

1. A broker leads a partition only because the metadata says so, under a leader epoch that no other leader had. Followers cut
   their logs by these epochs, so a second leader in one epoch would lose records.
2. A decision is durable before anyone hears of it. The next controller starts from the store or the log alone, and would not
   know what only brokers had been told.
3. A write of the metadata is conditional: on an epoch, or on the version of a node. So a controller that was replaced is
   harmless before it knows.
4. A controller that finds itself replaced drops what it knew, and goes on from the store or the committed log. Loading all of
   it is simpler than repairing a part, and every election tests it.
5. A broker sends a request again when its response was lost, so a controller may execute it twice. A request that must not
   happen twice names the epoch that it changes. A second request for producer ids wastes one block.
6. Decisions are plain functions of the present state. Waiting, disk and network stay outside of them, so tests and
   simulations can try any order of events.
7. Only ``zookeeper/`` names the store's nodes and the controller's requests, beside the wire and three handlers.
   ``tests/test_structure.py`` keeps that: one place translates them, and all others know one kind of metadata.
"""
