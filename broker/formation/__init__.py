"""Formation of a KRaft cluster by nodes that list one another, without a format step and without a copied id.

``cluster.nodes`` (``ottla serve --cluster``) lists the first nodes of a cluster in their order. Each starts unformatted. Once all
of them have promised the same cluster, and have that on disk, each formats its log directories as one of its first voters; a node
that finds the cluster formed joins it.

- ``node_list``: the list, and the properties that it stands for
- ``protocol``: the rules, pure
- ``messages``: what nodes tell one another, and its frames on the controllers' listener
- ``record``: what a node has promised, on disk, and the formatting that follows
- ``gate``: responds to frames of a formation among Kafka's requests

The one task that forms or joins a cluster before the node's server starts is ``broker.cluster_formation``.
"""
