"""Transactions: who may write under a transactional id, and how each transaction ends (KIP-98, KIP-360, KIP-890).

``TransactionCoordinator`` serves the transactional ids whose partitions of ``__transaction_state`` this broker leads.
``transaction`` holds the state of one id and its transitions as pure functions, ``records`` their form in the log,
``shard`` one partition's ids as a replicated state machine, ``ending`` writes the end markers.
"""
