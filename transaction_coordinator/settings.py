"""Settings of the transaction coordinator: ``transaction.*`` and ``transactional.id.*``, under Kafka's names.

As with ``__consumer_offsets``, a broker with its own store reads ``transaction.state.log.replication.factor`` and
``transaction.state.log.min.isr`` as 1.
"""

from __future__ import annotations

from ..base.settings import ConfigValueType, Settings, setting

TOPIC = "__transaction_state"


class TransactionSettings(Settings):
    """Transactions and transactional ids."""

    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        default=900_000,
        at_least=1,
        doc="Longest transaction timeout of a producer.",
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        default=7 * 24 * 3_600_000,
        at_least=1,
        doc="Time that a transactional id is kept after its last transaction.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        default=10_000,
        at_least=1,
        doc="Interval at which transactions that exceed their timeout are aborted.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        default=3_600_000,
        at_least=1,
        doc="Interval at which expired transactional ids are removed.",
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        default=50,
        at_least=1,
        doc="Partitions of __transaction_state when it is created; never change it afterwards.",
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes",
        default=100 << 20,
        at_least=1,
        doc="segment.bytes of __transaction_state.",
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        default=3,
        kind=ConfigValueType.SHORT,
        at_least=1,
        doc="Replicas of __transaction_state, which is created once there are as many brokers; 1 on a single broker.",
    )
    transaction_state_log_min_isr: int = setting(
        "transaction.state.log.min.isr",
        default=2,
        at_least=1,
        doc="min.insync.replicas of __transaction_state, at most its replication factor.",
    )
    transaction_partition_verification_enable: bool = setting(
        "transaction.partition.verification.enable",
        default=True,
        dynamic=True,
        doc="Whether a leader verifies a transaction with its coordinator, before the first record in a "
        "partition (KIP-890).",
    )
