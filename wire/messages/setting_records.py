"""Records of ``__cluster_metadata`` about configs, features, quotas and producer ids (KIP-631).

A config without a value is removed. There is one record for each key of a quota; an entity without a name is the default.
"""

from ..schema import Message, Struct, field, float64, int8, int16, int32, int64, message, string, struct


@message(versions="0", flexible="0+", key=4)
class ConfigRecord(Message):
    resource_type: int8 = field()
    resource_name: string = field()
    name: string = field()
    value: string | None = field()


@message(versions="0", flexible="0+", key=12)
class FeatureLevelRecord(Message):
    name: string = field()
    feature_level: int16 = field()


@struct
class EntityData(Struct):
    entity_type: string = field()
    entity_name: string | None = field()


@message(versions="0", flexible="0+", key=14)
class ClientQuotaRecord(Message):
    entity: list[EntityData] = field()
    key: string = field()
    value: float64 = field()
    remove: bool = field()


@message(versions="0", flexible="0+", key=15)
class ProducerIdsRecord(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    next_producer_id: int64 = field()
