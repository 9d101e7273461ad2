"""Consumer groups of the classic protocol: their members, their rebalances, and the offsets that they commit.

``GroupCoordinator`` serves the groups whose partitions of ``__consumer_offsets`` this broker leads. ``shard`` is one such
partition as a replicated state machine, ``records`` what it writes there, ``replay`` what each type of record changes.
``membership``, ``rebalance``, ``offsets``, ``transactional`` and ``expiry`` are its rules, as plain functions; ``group`` holds
the state of one group, ``timers`` its deadlines, and ``waiter`` a response that has to wait.
"""
