"""The Envelope request, in which a broker forwards a client's request to the active controller (KIP-590).

The envelope has the request as the client sent it, header and body, the client's address, and its principal as the broker has
authenticated it: int16 0, then Kafka's message DefaultPrincipalData (DefaultKafkaPrincipalBuilder). The controller decides by
that principal.
"""

from __future__ import annotations

import ipaddress
from struct import Struct
from typing import Any

from ...base.errors import ErrorCode, KafkaError, known_code
from ...security.principal import Principal
from ...wire.api_keys import ApiKey
from ...wire.codec import decode, encode_bytes
from ...wire.headers import decode_response_header, encode_request_header
from ...wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...wire.messages.principal_data import DefaultPrincipalData
from ...wire.registry import response_class
from ...wire.schema import Message

FORWARDED = (
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
)
"""What a broker forwards, of all that clients ask (``ApiKeys.forwardable``)."""

_VERSION = Struct(">h")
_CORRELATION_ID = 0


def encode_principal(principal: Principal) -> bytes:
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.token_authenticated
    )
    return _VERSION.pack(0) + encode_bytes(data, 0)


def enveloped(
    request: Message, version: int, client_id: str | None, principal: Principal, host: str
) -> EnvelopeRequest:
    """The envelope of a client's request; ``host`` is the client's address."""
    header = encode_request_header(request.api_key, version, _CORRELATION_ID, client_id)
    return EnvelopeRequest(
        request_data=header + encode_bytes(request, version),
        request_principal=encode_principal(principal),
        client_host_address=_address(host),
    )


def _address(host: str) -> bytes:
    """4 or 16 bytes; those of the loopback address for a connection that has none, as in a test."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return bytes((127, 0, 0, 1))


def opened(response: EnvelopeResponse, api_key: int, version: int) -> Any:
    """The controller's response to the request in the envelope. Raises KafkaError for an error of the envelope itself."""
    if response.error_code:
        raise KafkaError(known_code(response.error_code), "the controller refuses a request that was forwarded to it")
    data = response.response_data
    if data is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller's envelope is empty")
    _, start = decode_response_header(data, api_key, version)
    return decode(response_class(ApiKey(api_key)), version, data[start:])
