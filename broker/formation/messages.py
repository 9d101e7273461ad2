"""The messages of a formation: statements as JSON, and their frames on the controllers' listener.

========  ==========================================================================================================
request   int32 size, int16 ``FORMATION_KEY``, int16 version 0, int32 correlation id, the statement
response  int32 size, int32 correlation id, the statement, or ``{"error": TEXT}``
========  ==========================================================================================================

A statement is a JSON object in UTF-8. The start of a request is that of every request of Kafka, with a key that Kafka does not
have: ApiVersions does not tell of it, and a node of Apache Kafka ends the connection.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from ...base.addresses import split_host_port
from ...base.errors import ProtocolError
from ...wire.schema import uuid_from_text, uuid_to_text
from .protocol import FormationProposal, FormationRecord, FormationStatement, ListedNode, NodeList

FORMATION_KEY = 0x4F54
"""The letters OT."""
FORMATION_VERSION = 0
MOST_FORMATION_BYTES = 64 << 10
"""The largest frame that is read."""

_SIZE = struct.Struct(">i")
_REQUEST = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">i")


class RefusedStatementError(Exception):
    """The other node does not take part in a formation with this one. ``str()`` has its words."""


# --- frames -----------------------------------------------------------------------------------------------------------


def encode_request(statement: FormationStatement, correlation_id: int) -> bytes:
    return _framed(_REQUEST.pack(FORMATION_KEY, FORMATION_VERSION, correlation_id), statement_to_json(statement))


def encode_response(statement: FormationStatement, correlation_id: int) -> bytes:
    return _framed(_RESPONSE.pack(correlation_id), statement_to_json(statement))


def encode_refusal(why: str, correlation_id: int) -> bytes:
    return _framed(_RESPONSE.pack(correlation_id), {"error": why})


def _framed(head: bytes, content: Mapping[str, Any]) -> bytes:
    body = head + json.dumps(content, separators=(",", ":")).encode()
    return _SIZE.pack(len(body)) + body


def is_of_formation(frame: memoryview) -> bool:
    """Whether a frame, without its size, is such a request."""
    return bytes(frame[:2]) == FORMATION_KEY.to_bytes(2)


def decode_request(frame: memoryview) -> tuple[int, FormationStatement]:
    """The correlation id and the statement of a frame, without its size. Raises ProtocolError."""
    if not _REQUEST.size <= len(frame) <= MOST_FORMATION_BYTES:
        raise ProtocolError(f"a request of a formation with {len(frame)} bytes")
    _, version, correlation_id = _REQUEST.unpack_from(frame)
    if version != FORMATION_VERSION:
        raise ProtocolError(f"version {version} of a formation's requests is not known")
    return correlation_id, statement_of_json(_parsed(frame[_REQUEST.size :]))


def decode_response(frame: bytes | memoryview) -> FormationStatement:
    """The statement of a frame, without its size. Raises ProtocolError, RefusedStatementError."""
    content = _parsed(frame[_RESPONSE.size :])
    if "error" in content:
        raise RefusedStatementError(str(content["error"]))
    return statement_of_json(content)


def _parsed(text: bytes | memoryview) -> dict[str, Any]:
    try:
        content = json.loads(bytes(text))
    except (ValueError, RecursionError):
        raise ProtocolError("it is not a node of Ottla") from None
    if not isinstance(content, dict):
        raise ProtocolError("a formation's message is not an object")
    return content


# --- statements and records as JSON -----------------------------------------------------------------------------------


def statement_to_json(said: FormationStatement) -> dict[str, Any]:
    return {
        "node_id": said.node_id,
        "nodes": [str(node) for node in said.nodes],
        "directory_id": uuid_to_text(said.directory_id),
        "promise": None if said.promise is None else _proposal_to_json(said.promise),
        "cluster_id": said.cluster_id,
    }


def statement_of_json(content: Mapping[str, Any]) -> FormationStatement:
    """Raises ProtocolError."""
    try:
        return FormationStatement(
            int(content["node_id"]),
            _nodes(content["nodes"]),
            uuid_from_text(content["directory_id"]),
            _proposal(content["promise"]),
            _text(content["cluster_id"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"a malformed statement of a formation: {error}") from None


def record_to_json(record: FormationRecord) -> dict[str, Any]:
    return {
        "version": 1,
        "directory_id": uuid_to_text(record.directory_id),
        "node_id": record.node_id,
        "nodes": [str(node) for node in record.nodes],
        "promise": None if record.promise is None else _proposal_to_json(record.promise),
        "cluster_id": record.cluster_id,
    }


def record_of_json(content: Mapping[str, Any]) -> FormationRecord:
    """Raises ProtocolError."""
    try:
        if content["version"] != 1:
            raise ValueError(f"version {content['version']} is not known")
        return FormationRecord(
            uuid_from_text(content["directory_id"]),
            int(content["node_id"]),
            _nodes(content["nodes"]),
            _proposal(content["promise"]),
            _text(content["cluster_id"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"no record of a formation: {error}") from None


def _proposal_to_json(proposal: FormationProposal) -> dict[str, Any]:
    return {
        "ballot": proposal.ballot,
        "cluster_id": proposal.cluster_id,
        "created_ms": proposal.created_ms,
        "levels": dict(proposal.levels),
        "directory_ids": [uuid_to_text(each) for each in proposal.directory_ids],
    }


def _proposal(content: Any) -> FormationProposal | None:
    if content is None:
        return None
    return FormationProposal(
        int(content["ballot"]),
        str(content["cluster_id"]),
        int(content["created_ms"]),
        {str(name): int(level) for name, level in content["levels"].items()},
        tuple(uuid_from_text(each) for each in content["directory_ids"]),
    )


def _nodes(content: Any) -> NodeList:
    return tuple(ListedNode(*split_host_port(each)) for each in content)


def _text(content: Any) -> str | None:
    return None if content is None else str(content)
