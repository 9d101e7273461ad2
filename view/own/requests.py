"""Request statistics: counts, the last requests recorded one by one, and the errors sent to clients.

Requests that were answered at once and without an error are counted only (``RequestObserver``). All that is kept is bounded.
A code by which the protocol tells a client what to do next, as it does while nothing is wrong, is no error (``STEPS``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...base.errors import ErrorCode
from ...base.network import Part, total_size
from ...handlers.call import TELLING, NodeCall
from ...wire.api_keys import ApiKey
from ...wire.error_codes import error_finder, error_messages
from ...wire.headers import key_and_version
from ..rows import ErrorRow, RequestRow
from .kept_requests import MOST_KEPT, KeptRequests

MOST_ERRORS = 500
STEPS: Mapping[ErrorCode, frozenset[ApiKey]] = {
    ErrorCode.MEMBER_ID_REQUIRED: frozenset({ApiKey.JOIN_GROUP}),  # KIP-394: every new member is told its id so
    ErrorCode.REBALANCE_IN_PROGRESS: frozenset(
        {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT}
    ),
    ErrorCode.UNSUPPORTED_VERSION: frozenset({ApiKey.API_VERSIONS}),  # KIP-511: a newer client asks again
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: frozenset({ApiKey.FETCH}),  # KIP-227: the client begins another one
    ErrorCode.CONCURRENT_TRANSACTIONS: frozenset(  # the one before is being ended: the client asks again
        {ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN}
    ),
}
"""The APIs in whose responses a code is a step of the protocol. A transaction that is never ended is among the open ones."""
_LONGEST_TEXT = 200
_HOUR_MS = 3_600_000
_MOST_LOOKED_INTO = 200
"""Structs of a response in which its message is looked for, on the way of the request."""


class _Error:
    __slots__ = ("count", "last_ms", "reason")

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0
        self.reason = ""


class RequestsSeen:
    """The ``RequestObserver`` that makes the statistics."""

    def __init__(self, elapsed: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self.elapsed = elapsed
        self._now_ms = now_ms
        self.count = 0
        """Of all requests so far."""
        self.failed = 0
        """The number of requests so far whose response had an error."""
        self.last: deque[RequestRow] = deque(maxlen=MOST_KEPT)
        """The newest at its end."""
        self.kept = KeptRequests()
        self._errors: dict[tuple[int, int, str], _Error] = {}

    def observes_each(self, api_key: int) -> bool:
        """Because of the errors that may be in a response."""
        return api_key not in TELLING

    def observe_batch(self, key: int, count: int, seconds: float) -> None:
        self.count += count

    def observe_request(
        self,
        call: NodeCall,
        frame: memoryview,
        response: Any,
        parts: Sequence[Part] | None,
        local: float,
        remote: float,
    ) -> None:
        self.count += 1
        api_key, version = key_and_version(call.key)
        codes: Sequence[int] = ()
        if call.error_counts is not None:
            codes = list(call.error_counts)
        elif response is not None and (call.failed or api_key not in TELLING):
            codes = list(dict.fromkeys(error_finder(type(response))(response)))
        now_ms = self._now_ms()
        client_id = call.client_id[:_LONGEST_TEXT]
        errors = [code for code in codes if not _is_step(api_key, code)]
        reason = ""
        if errors:
            self.failed += 1
            reason = _reason(call, response)
            for code in errors:
                self._note_error(api_key, code, client_id, now_ms, reason)
        row = RequestRow(
            now_ms,
            ApiKey(api_key).title,
            version,
            client_id,
            call.connection.peer,
            local * 1000,
            (local + remote) * 1000,
            len(frame),
            total_size(parts or ()),
            tuple(ErrorCode(code).name for code in errors),
            tuple(ErrorCode(code).name for code in codes if _is_step(api_key, code)),
            reason or call.reason[:_LONGEST_TEXT],
            self.count,
        )
        self.last.append(row)
        self.kept.keep(api_key, row, frame, parts)

    def _note_error(self, api_key: int, code: int, client_id: str, now_ms: int, reason: str) -> None:
        key = (api_key, code, client_id)
        seen = self._errors.pop(key, None) or _Error()
        self._errors[key] = seen  # the one that was seen last stands last
        if len(self._errors) > MOST_ERRORS:
            del self._errors[next(iter(self._errors))]
        seen.count += 1
        seen.last_ms = now_ms
        seen.reason = reason or seen.reason

    def errors(self) -> list[ErrorRow]:
        """Those of the last hour, the newest first; ``count`` is since there was none for an hour."""
        since = self._now_ms() - _HOUR_MS
        for key in [key for key, seen in self._errors.items() if seen.last_ms < since]:
            del self._errors[key]
        return [
            ErrorRow(ApiKey(api_key).title, ErrorCode(code).name, client_id, seen.count, seen.last_ms, seen.reason)
            for (api_key, code, client_id), seen in reversed(self._errors.items())
        ]


def _reason(call: NodeCall, response: Any) -> str:
    """Why, as the handler has noted it, or as the response says it to the client."""
    if call.reason or response is None:
        return call.reason[:_LONGEST_TEXT]
    return next(error_messages(response, _MOST_LOOKED_INTO), "")[:_LONGEST_TEXT]


def _is_step(api_key: int, code: int) -> bool:
    return api_key in STEPS.get(ErrorCode(code), ())
