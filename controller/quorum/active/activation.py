"""The first records of a controller that becomes active (KIP-868).

An empty log gets the records that formatting has left (``bootstrap.checkpoint``), in a metadata transaction where the level of
``metadata.version`` has them: nobody sees a part of them. A transaction that the controller before has left open is aborted
first. All other logs need nothing. Source: Kafka's ActivationRecordsGenerator.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ....wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ....wire.metadata_records import VersionedRecord
from ....wire.schema import Message
from .. import metadata_version
from ..metadata_version import ELR, FEATURE
from ..replay import ANY_BROKER, BROKER_CONFIG
from .context import MIN_ISR, OperationContext
from .result import ControllerResult

_TRANSACTION = "Bootstrap records"
_FAILOVER = "Controller failover"


def activate(context: OperationContext, bootstrap: Sequence[VersionedRecord]) -> ControllerResult[None]:
    """The records; ``bootstrap`` has those of a new cluster, ``metadata.version`` first."""
    is_in_transaction = context.state.transaction is not None
    records: list[VersionedRecord] = []
    if is_in_transaction:
        records.append((AbortTransactionRecord(reason=_FAILOVER), 0))
    if context.level:
        assert not is_in_transaction or metadata_version.has_transactions(context.level)
        return ControllerResult(records, None)
    levels = {record.name: record.feature_level for record, _ in bootstrap if isinstance(record, FeatureLevelRecord)}
    has_transactions = metadata_version.has_transactions(levels[FEATURE])
    assert has_transactions or not is_in_transaction
    if has_transactions:
        records.append((BeginTransactionRecord(name=_TRANSACTION), 0))
    records += bootstrap
    if levels.get(ELR, 0) > 0 and not any(_sets_min_isr(record) for record, _ in bootstrap):
        # With ELR the ISR of every partition is compared with it, so all nodes must know the same value (KIP-966).
        config = ConfigRecord(
            resource_type=BROKER_CONFIG,
            resource_name=ANY_BROKER,
            name=MIN_ISR,
            value=str(context.settings.min_insync_replicas),
        )
        records.append((config, 0))
    if has_transactions:
        records.append((EndTransactionRecord(), 0))
    return ControllerResult(records, None, is_atomic=not has_transactions)


def _sets_min_isr(record: Message) -> bool:
    return (
        isinstance(record, ConfigRecord)
        and record.resource_type == BROKER_CONFIG
        and record.resource_name == ANY_BROKER
        and record.name == MIN_ISR
    )
