"""Consumer groups of the classic protocol: their members, their rebalances, and the offsets that they commit.

``GroupCoordinator`` serves the groups whose partitions of ``__consumer_offsets`` this broker leads. ``shard`` is one such
partition as a replicated state machine, ``records`` what it writes there, ``replay`` what each type of record changes.
``membership``, ``rebalance``, ``offsets``, ``transactional`` and ``expiry`` are its rules, as plain functions. A ``group`` has
a durable ``generation`` and a soft ``live_group``; ``committed_offsets`` are apart from it. ``timers`` are deadlines, and a
``waiter`` is a response that has to wait.
"""
