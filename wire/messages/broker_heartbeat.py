"""BrokerHeartbeat (key 63): a broker says that it lives, and what it wants; the controller says what it may (KIP-631).

v1  log directories that have failed (KIP-858)
v2  log directories that are to get no new replicas
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response, uuid


@request(key=ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    current_metadata_offset: int64 = field()
    want_fence: bool = field()
    want_shut_down: bool = field()
    offline_log_dirs: list[uuid] = field("1+", tag=0)
    cordoned_log_dirs: list[uuid] | None = field("2+", default=None, tag=1)


@response(key=ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    is_caught_up: bool = field(default=False)
    is_fenced: bool = field(default=True)
    should_shut_down: bool = field()
