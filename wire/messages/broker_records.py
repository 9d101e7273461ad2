"""Records of ``__cluster_metadata`` about brokers and controllers (KIP-631, KIP-919).

The epoch of a broker is the offset of its RegisterBroker. In BrokerRegistrationChange 0 is no change, 1 fenced or in controlled
shutdown, and -1 unfenced. FenceBroker and UnfenceBroker are older forms of it.

Version notes of RegisterBroker: 1 has controlled shutdown, 2 the migration from ZooKeeper, 3 log directories (KIP-858), 4 those
that get no new replicas.
"""

from ..schema import Message, Struct, field, int8, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class BrokerFeature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


@struct
class BrokerEndpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


@message(versions="0-4", flexible="0+", key=0)
class RegisterBrokerRecord(Message):
    broker_id: int32 = field()
    is_migrating_zk_broker: bool = field("2+", default=False)
    incarnation_id: uuid = field()
    broker_epoch: int64 = field()
    end_points: list[BrokerEndpoint] = field()
    features: list[BrokerFeature] = field()
    rack: string | None = field()
    fenced: bool = field(default=True)
    in_controlled_shutdown: bool = field("1+", default=False)
    log_dirs: list[uuid] = field("3+", tag=0)
    cordoned_log_dirs: list[uuid] | None = field("4+", default=None, tag=1)


@message(versions="0", flexible="0+", key=1)
class UnregisterBrokerRecord(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field()


@message(versions="0", flexible="0+", key=7)
class FenceBrokerRecord(Message):
    id: int32 = field()
    epoch: int64 = field()


@message(versions="0", flexible="0+", key=8)
class UnfenceBrokerRecord(Message):
    id: int32 = field()
    epoch: int64 = field()


@message(versions="0-3", flexible="0+", key=17)
class BrokerRegistrationChangeRecord(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field()
    fenced: int8 = field(tag=0)
    in_controlled_shutdown: int8 = field("1+", tag=1)
    log_dirs: list[uuid] = field("2+", tag=2)
    cordoned_log_dirs: list[uuid] | None = field("3+", default=None, tag=3)


@struct
class ControllerEndpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


@struct
class ControllerFeature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


@message(versions="0", flexible="0+", key=27)
class RegisterControllerRecord(Message):
    controller_id: int32 = field()
    incarnation_id: uuid = field()
    zk_migration_ready: bool = field()
    end_points: list[ControllerEndpoint] = field()
    features: list[ControllerFeature] = field()
