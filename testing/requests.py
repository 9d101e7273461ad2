"""Records the requests that clients send, decoded, for assertions."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..handlers.call import Call
from ..wire.api_keys import ApiKey
from ..wire.schema import Struct, replace
from . import names

__tracebackhide__ = True  # a failure points at the caller's line


@dataclasses.dataclass(frozen=True)
class SentRequest:
    """One request that a broker received."""

    api: str
    version: int
    client_id: str
    peer: str
    topics: frozenset[str]
    """The topics that it names; for a fetch also those of its session."""
    body: Any
    """The decoded message, with Kafka's fields in snake_case (``body.group_id``)."""


class Requests:
    """The last ``most`` requests that a broker received while it recorded. ``changed`` is called after start and stop.

    ``with requests.recording():`` records for the length of a block.
    """

    def __init__(self, changed: Callable[[], None], most: int = 10_000) -> None:
        self._changed = changed
        self._sent: deque[SentRequest] = deque(maxlen=most)
        self._ever = False
        self.is_recording = False

    def start(self) -> None:
        """Record from now on."""
        self._ever = self.is_recording = True
        self._changed()

    def stop(self) -> None:
        """Stop recording; recorded requests are kept."""
        self.is_recording = False
        self._changed()

    def clear(self) -> None:
        """Forget the recorded requests."""
        self._sent.clear()

    def recording(self) -> Requests:
        """For ``with``."""
        self.start()
        return self

    def __enter__(self) -> Requests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def where(
        self, *, api: str | None = None, client_id: str | None = None, topic: str | None = None
    ) -> list[SentRequest]:
        """The recorded requests that match, in the order they came. Raises ValueError, RuntimeError when nothing was recorded."""
        if not self._ever:
            raise RuntimeError("no requests were recorded: call requests.start() before the client sends them")
        wanted = None if api is None else names.api_name(names.api_key(api))
        return [
            sent
            for sent in list(self._sent)
            if wanted in (None, sent.api)
            and client_id in (None, sent.client_id)
            and (topic is None or topic in sent.topics)
        ]

    def note(self, api: ApiKey, call: Call, request: Any) -> None:
        """Keep a request; its records are copied, because they are a view into the connection's buffer."""
        self._sent.append(
            SentRequest(
                names.api_name(api),
                call.version,
                call.client_id,
                call.connection.peer,
                names.topics_of(call, request),
                _kept(request),
            )
        )


def _kept(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, list):
        return [_kept(item) for item in value]
    if isinstance(value, Struct):
        return replace(value, **{spec.name: _kept(getattr(value, spec.name)) for spec in value.fields})
    return value
