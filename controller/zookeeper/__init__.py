"""The cluster of ZooKeeper mode: the nodes that hold its metadata, the controller that decides, the requests that tell brokers.

* ``znodes``, ``acl_znodes`` and ``token_znodes`` have Kafka's paths and the form of each node. ``registration`` and
  ``membership`` keep a broker in the cluster.
* ``candidate`` stands for election, ``term`` is what an elected controller knows, ``events`` the queue that it handles.
  ``topics``, ``leaders``, ``reassignment``, ``deletion`` and ``alter_partition`` decide, by the pure rules of ``leadership`` and
  ``metadata.rules``; ``sender`` sends the decisions to the brokers, and ``replica_requests`` translates them there.
* ``config_store``, ``acl_store`` and ``token_store`` are what every broker, not only the controller, reads and changes in the
  store: configurations, access rules, delegation tokens.
"""
