"""The metadata of a cluster as plain values, independent of protocol, storage and event loop.

This is the page of the image: its content, its versions, and the parts that make and follow it. Each module says its own part in
full. Nothing here waits, reads a clock, or knows a connection or a store; import-linter forbids the modules for it.

The image
---------

A ``ClusterImage`` is the cluster at one moment. A node decides by it, and responds to clients from it.

============================================================  ===============================================  =================
field                                                         content                                          known in
============================================================  ===============================================  =================
``controller_id``, ``brokers``                                the controller; the live brokers by id           both modes
``topics``, ``topics_by_id``                                  one ``TopicImage`` under its name and its id     both modes
``configs``, ``quotas``, ``scram``                            by entity: topic, broker, user, client, address  both modes
``acls``, ``tokens``                                          access rules by pattern, delegation tokens       both modes
``features``, ``next_producer_id``                            finalized levels; the first unused producer id   both modes
``quorum_brokers``, ``quorum_controllers``, ``acl_ids``       registrations, also fenced ones; ids of rules    a quorum
``position``                                                  the last batch of the metadata log in it         a quorum
============================================================  ===============================================  =================

A ``TopicImage`` has a ``PartitionRegistration`` per partition: leader, epochs, in-sync replicas, replicas, directories. Values
are frozen dataclasses and named tuples (``types``). Mappings inside them are plain dicts, which nobody changes once published.

Versions
--------

``image.apply(delta)`` returns the next image. It shares everything that the delta does not name, so a change costs what changed.
A topic's image is the same object until a delta names the topic. So what was derived from that object stays valid as long.

Most fields are a ``PersistentDict``. The newest version owns the dict and changes it in place; the one before keeps only what
undoes the change. An older version that is read again copies the dict once. So the newest version costs a plain dict, and a
version that nobody reads costs nothing. Two costs are larger: a changed topic copies the dict of its partitions, and a change of
live brokers replaces ``brokers``. Versions belong to one thread; ``detached`` copies an image for another.

A ``ClusterDelta`` has what changed of each kind. A value replaces the former one of its key as a whole; an empty value removes
the key. ``difference.delta_between`` makes the delta between two images, at a cost of what there is. It serves snapshots, which
are whole images, and the first publication of a start.

Feeding and following
---------------------

============================================  ==================================================================================
who feeds an image                            how
============================================  ==================================================================================
``controller/zookeeper``                      ``replica_requests`` translates a controller's requests, and hands states of own
                                              replicas to ``ReplicaManager``; the stores of configs, access rules, tokens and
                                              features publish what they read
``controller/quorum``                         ``RecordReplay`` makes a delta of the committed records of the metadata log;
                                              ``MetadataLoader`` publishes it, and nothing within a metadata transaction
the active controller of a quorum             the same replay, on records that are not committed yet; older states stay until then
============================================  ==================================================================================

Whoever publishes hands delta and new image to the *publishers*, plain functions in the order in which they were added
(``published``). On a broker ``MetadataCache`` in ``replication`` does that. The image is in place before the first one is called,
so each may read all of it. First come dynamic settings, connections to other brokers and replicas; then topic settings, access
rules, quotas and groups. On a broker of a quorum ``ReplicaPublisher`` precedes them all. Tasks that wait for the image wake last.

Rules
-----

The decisions of a controller, as pure functions of what they are given; randomness is an argument.

=============================  =================================================================================================
``rules.election``             the leader of a new partition, after a failure, or the preferred one, in ZooKeeper mode; a quorum
                               elects in ``controller/quorum/active/partition_changes``, by the record that it writes
``rules.assignment``           replicas of a new partition in ZooKeeper mode: round robin, shifted, over racks
``rules.striped_placement``    replicas of a new partition in a quorum: in stripes over racks and machines
``rules.topic_names``          legal names, names that collide, internal topics
=============================  =================================================================================================

Invariants
----------

1. Nobody changes an image. A reader that waits keeps the state it began with, and can compare it with the newest one.
2. ``leader_epoch`` grows with each election and ``partition_epoch`` with each change of a partition. So of two states of a
   partition it is known which is newer, even if messages overtake each other.
3. In a quorum ``position`` is the offset, epoch and time of the last batch applied: the same position means the same records on
   every node. The epoch of ``features`` is that offset; in ZooKeeper mode it is the version of their node.
4. ``topics_by_id`` holds the objects of ``topics`` that have an id. A topic made again under its name is another one.
5. Nothing empty is stored: a key with an empty value is not in the image, and a topic without partitions does not exist.

Rejected: one struct that everybody changes. A reader that waits would see half a change, and nobody could tell what is new.
Rejected: Kafka's messages as the model. Requests, nodes and records each say a part, in different words; the broker would be
written three times.
"""
