"""A cluster in ZooKeeper mode: its metadata in a tree of nodes, and a controller that tells each broker what to do.

The nodes, their JSON and the requests are those of Apache Kafka 3.9, so brokers of both work in one cluster (``nodes.znodes``).
``cluster`` joins the parts: the session, the broker's registration, its controller, and what it reads and writes itself.

How a change happens
--------------------

1. A *term* begins with an election: one transaction makes the ephemeral ``/controller`` and raises ``/controller_epoch``.
2. The controller reads the cluster into a context (``state``), and sets watches by the same reads.
3. Whatever happens is an event in one queue, handled one at a time: a watch that fires, a request, a broker's response.
4. Pure rules decide (``active.leadership``, ``metadata.rules``). The new states go to the store first, the context follows.
5. LeaderAndIsr goes to the replicas, then UpdateMetadata to every broker; StopReplica ends a replica. A task for each broker
   sends one request at a time, each until it is answered or the broker's registration ends. The controller waits for none.
6. On the broker ``replica_requests`` translates the requests into a ``ClusterDelta``; nothing behind it knows them.

What makes it safe
------------------

The transactions of a term check the version of ``/controller_epoch`` (``fenced_multi``). If that fails, another broker was
elected: the term ends, its context is dropped, and the broker stands for election again. A state is written on the condition
that its node has the known version. After a conflict it is read and decided again. Blocks of producer ids, and what any
broker writes (configs, access rules, tokens, missing topics), have such conditions only. Watches and notifications tell others.

A new controller repeats what the one before may have left undone. It takes out replicas that were lost or came back unseen
(``active.known_brokers``), sends everything to every broker, and resumes moves and deletions by their nodes.

What a lost session means
-------------------------

- *Suspected*: the store has not answered for two thirds of the session's time-out. The controller stops acting, since another
  may have been elected. The broker still leads its partitions. When the store answers, everything is read again, because
  the watches are lost.
- *Expired*: the broker's node is gone, and the others take it for dead. The controller resigns first. Then the broker opens
  a new session, registers under a new broker epoch, reads configs again, and stands for election (``membership``).
"""
