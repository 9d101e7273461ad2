"""The state of the cluster: the store that holds it, a broker's session there, and the controller.

* ``store`` is the interface, with ZooKeeper's semantics, which ``zookeeper_session`` and, for a broker without ZooKeeper,
  ``embedded_session`` implement. ``session`` and ``membership`` keep a broker in the cluster; ``znodes`` has Kafka's paths.
* ``candidate`` stands for election, ``term`` is what an elected controller knows, ``events`` the queue that it handles.
  ``topics``, ``leaders``, ``reassignment``, ``deletion`` and ``alter_partition`` decide, by the pure rules of ``assignment``,
  ``election`` and ``leadership``; ``sender`` sends the decisions to the brokers.
* ``config_store``, ``acl_store`` and ``token_store`` are what every broker, not only the controller, reads and changes in the
  store: configurations, access rules, delegation tokens.
"""
