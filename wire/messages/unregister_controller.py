"""UnregisterController (key 94): removes from the cluster's metadata a controller that has stopped."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, request, response, string


@request(key=ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerRequest(Message):
    controller_id: int32 = field()


@response(key=ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
