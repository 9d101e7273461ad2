"""BrokerRegistration (key 62): a broker joins the cluster under a new epoch (KIP-631).

v1  migration from ZooKeeper (KIP-866)
v2  log directories (KIP-858)
v3  the epoch of the registration before, for a broker that was stopped cleanly (KIP-966)
v4  a feature's lowest version may be 0
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uint16, uuid


@struct
class Feature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


@struct
class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


@request(key=ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+")
class BrokerRegistrationRequest(Message):
    broker_id: int32 = field()
    cluster_id: string = field()
    incarnation_id: uuid = field()
    listeners: list[Listener] = field()
    features: list[Feature] = field()
    rack: string | None = field()
    is_migrating_zk_broker: bool = field("1+", default=False)
    log_dirs: list[uuid] = field("2+", ignorable=True)
    previous_broker_epoch: int64 = field("3+", default=-1, ignorable=True)


@response(key=ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+")
class BrokerRegistrationResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    broker_epoch: int64 = field(default=-1)
