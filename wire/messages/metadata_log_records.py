"""Records of ``__cluster_metadata`` about the log itself: transactions of records (KIP-868), and records that say nothing."""

from ..schema import Message, field, int8, message, string


@message(versions="0", flexible="0+", key=20)
class NoOpRecord(Message):
    """Has no fields."""


@message(versions="0", flexible="0+", key=23)
class BeginTransactionRecord(Message):
    name: string | None = field(default=None, tag=0)


@message(versions="0", flexible="0+", key=24)
class EndTransactionRecord(Message):
    """Has no fields."""


@message(versions="0", flexible="0+", key=25)
class AbortTransactionRecord(Message):
    reason: string | None = field(default=None, tag=0)


@message(versions="0", flexible="0+", key=21)
class ZkMigrationStateRecord(Message):
    zk_migration_state: int8 = field()
