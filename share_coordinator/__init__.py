"""The share coordinator: what the leaders of share partitions keep of their delivery states (KIP-932).

The group, topic id and partition of a *share partition* hash to a partition of ``__share_group_state``, whose leader is its
coordinator.
"""
