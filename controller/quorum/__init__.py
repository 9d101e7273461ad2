"""A KRaft cluster: its metadata as records of a log, the controllers that write them, and a broker's life among them.

The log and its leader come from ``raft``, and the controller is in ``active``. The modules here are the broker's, or both's.

How a change happens
--------------------

1. A broker sends its own requests to the active controller, and those of clients in an envelope (``channel``, ``envelope``).
2. The operation is a plain function: the request and the present state give records and a response. It changes nothing.
3. The records are replayed into the next state, and then appended to the log. Replay comes first, because a record that
   cannot be replayed would stop every node. The next operation sees the new state at once.
4. The response waits until the records are committed. An operation without records waits too, if its state is not committed.
5. Every node replays the same records from the committed log. Brokers publish what these change as a ``ClusterDelta``.

A *standby* controller applies committed records only. It claims the leadership when Raft says that its node leads. When it
loses it, all who wait are told NOT_CONTROLLER, and the last committed state counts again. Heartbeats are not in the log, so a
new active controller gives every broker that is not fenced a whole session.

The life of a broker
--------------------

===================  =============================================================================================
registration         The broker is *fenced*: it leads nothing, and no client is told of it. Its epoch is the offset
                     of the first record of the registration.
catching up          Heartbeats say how far it has applied the log. It is unfenced once it is ready and has applied
                     its own registration.
heartbeats           One goes out every ``broker.heartbeat.interval.ms``. A broker that is silent for a session is
                     fenced by a record: it leaves the in-sync replicas, and others lead.
controlled shutdown  The controller moves what the broker leads. The broker may stop when it leads nothing and every
                     active broker has applied the records that began this.
===================  =============================================================================================

The loader and snapshots
------------------------

``following`` reads committed batches from the log for each listener of a node. ``loader`` replays them and publishes one delta
for what came together; records of a metadata transaction wait for its end (KIP-868). Nothing is published before the first
high watermark heard from the quorum is reached: a broker that believed an empty image would set its logs aside.

Each node writes snapshots of its own image (``snapshot_generator``). A snapshot has the records that make this image from an
empty one. It spares a start most of the log, and replaces what the leader has deleted for a node that is far behind.

A record that does not fit raises ``ReplayError`` and stops the node: one that passed over it would have another cluster.
"""
