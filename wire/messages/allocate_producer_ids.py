"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids (KIP-730)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response


@request(key=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsRequest(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)


@response(key=ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    producer_id_start: int64 = field()
    producer_id_len: int32 = field()
