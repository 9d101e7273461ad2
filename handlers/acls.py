"""What the three ACL requests share: there is no authorizer, so each is answered SECURITY_DISABLED, as in Kafka.

Elements that are UNKNOWN (0) in a request are INVALID_REQUEST all the same: no broker can make sense of them.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError

UNKNOWN = 0


def refusal(*elements: int) -> KafkaError:
    """The answer to a request with these element types."""
    if UNKNOWN in elements:
        return KafkaError(ErrorCode.INVALID_REQUEST, "The request contains elements of type UNKNOWN.")
    return KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
