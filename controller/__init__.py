"""Changes of the cluster's metadata: who decides them, what may be set, and where they are kept.

What may be set on topics and brokers stands here; ``zookeeper`` is the one kind of cluster there is: its controller, its nodes
and its requests.
"""
