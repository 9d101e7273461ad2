"""The bytes of the last requests and responses, and the slowest requests of the last hour; all bounded.

Kept are requests that are told one by one (``requests``). Of those with passwords, tokens or keys, on either side, nothing is
kept, nor of what is larger than ``MOST_BYTES``; nor is a response with records from a file.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from typing import Any

from ...base.errors import ProtocolError
from ...base.network import Part, total_size
from ...broker.listeners.flight_recorder import WITH_SECRETS
from ...wire.api_keys import ApiKey
from ...wire.codec import decode
from ...wire.describe import message_as_json
from ...wire.headers import decode_response_header
from ...wire.recorded import decoded_request
from ...wire.registry import response_class
from ..rows import RequestRow

MOST_KEPT = 500
MOST_SLOW = 100
MOST_BYTES = 8 * 1024
"""Of a request, and as many of a response: 10 MB at most in all."""
_HOUR_MS = 3_600_000
_SECRET = frozenset({*WITH_SECRETS, ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN})
_WAITING = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""That these take long is what their clients want."""
_SIZE_BYTES = 4


class KeptRequest:
    """A request with its bytes and those of its response."""

    __slots__ = ("answer", "request", "row")

    def __init__(self, row: RequestRow, request: bytes | None, answer: bytes | None) -> None:
        self.row = row
        self.request = request
        """The bytes behind the size; None if they are not kept."""
        self.answer = answer
        """The same of the response."""


class KeptRequests:
    """The bounded store: ``keep`` each request, ``find`` one by its number."""

    def __init__(self) -> None:
        self._last: dict[int, KeptRequest] = {}
        self._slow: list[tuple[float, int, KeptRequest]] = []
        """A heap: of those of the last hour the fastest first."""

    def keep(self, api_key: int, row: RequestRow, frame: memoryview, parts: Sequence[Part] | None) -> None:
        """``frame`` without its size; ``parts`` with the size, None where there is no response."""
        request = answer = None
        if api_key not in _SECRET:
            request = bytes(frame) if len(frame) <= MOST_BYTES else None
            if parts is not None and total_size(parts) <= MOST_BYTES:
                pieces = [part for part in parts if isinstance(part, bytes | bytearray | memoryview)]
                answer = b"".join(pieces)[_SIZE_BYTES:] if len(pieces) == len(parts) else None
        kept = self._last[row.number] = KeptRequest(row, request, answer)
        if len(self._last) > MOST_KEPT:
            del self._last[next(iter(self._last))]
        if api_key not in _WAITING:
            self._note_slow(kept)

    def _note_slow(self, kept: KeptRequest) -> None:
        entry = (kept.row.total_ms, kept.row.number, kept)
        if len(self._slow) < MOST_SLOW:
            heapq.heappush(self._slow, entry)
        elif entry > self._slow[0]:
            heapq.heappushpop(self._slow, entry)
        elif self._slow[0][2].row.at_ms < kept.row.at_ms - _HOUR_MS:
            # A heap that is full of an earlier, slower hour would keep out everything after it.
            self._slow = [each for each in self._slow if each[2].row.at_ms >= kept.row.at_ms - _HOUR_MS]
            heapq.heapify(self._slow)
            heapq.heappush(self._slow, entry)

    def slowest(self, now_ms: int) -> list[RequestRow]:
        """Those of the last hour, the slowest first; without those that wait for records or for other members."""
        return [kept.row for _, _, kept in sorted(self._slow, reverse=True) if kept.row.at_ms >= now_ms - _HOUR_MS]

    def find(self, number: int) -> KeptRequest | None:
        """One of the last ones or of the slowest."""
        found = self._last.get(number)
        return found or next((kept for _, _, kept in self._slow if kept.row.number == number), None)


def decoded(kept: KeptRequest) -> tuple[str | None, str | None]:
    """A request and its response, field by field as JSON; None for what is not kept. To be called by a worker."""
    request = answer = None
    if kept.request is not None:
        try:
            request = decoded_request(kept.request)
        except (ProtocolError, ValueError) as error:
            request = {"problem": str(error)}
        if kept.answer is not None:
            answer = _decoded_answer(kept.request, kept.answer)
    return _as_text(request), _as_text(answer)


def _as_text(message: dict[str, Any] | None) -> str | None:
    return None if message is None else json.dumps(message, indent=2, ensure_ascii=False)


def _decoded_answer(request: bytes, answer: bytes) -> dict[str, Any]:
    key, version = int.from_bytes(request[:2]), int.from_bytes(request[2:4])
    try:
        message_class = response_class(ApiKey(key))
        _, offset = decode_response_header(answer, key, version)
        message = decode(message_class, version, memoryview(answer)[offset:])
    except (ProtocolError, ValueError, KeyError) as error:
        return {"problem": str(error)}
    return {"message": message_class.__name__, "version": version, "body": message_as_json(message, version)}
