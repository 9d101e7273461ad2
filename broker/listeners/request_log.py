"""A log line for each request of the traced APIs: ``ottla serve --trace produce,fetch``.

The line's fields are also those of the log record (``request``), so that a JSON log has them one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...base.errors import ErrorCode
from ...base.network import Part, total_size
from ...base.wording import shortened
from ...handlers.call import NodeCall
from ...handlers.table import HANDLERS
from ...wire.api_keys import ApiKey
from ...wire.error_codes import error_finder
from ...wire.headers import key_and_version

logger = logging.getLogger(__name__)

ALL = "all"


def parse_apis(text: str) -> frozenset[ApiKey]:
    """``produce,fetch`` or ``all``. Raises ValueError for a name that no served API has."""
    served = {handler.api_key.name.replace("_", "").lower(): handler.api_key for handler in HANDLERS}
    found: set[ApiKey] = set()
    for word in text.split(","):
        name = word.strip().replace("_", "").replace("-", "").lower()
        if name == ALL:
            found.update(served.values())
        elif name in served:
            found.add(served[name])
        else:
            raise ValueError(f"--trace takes names of APIs like Produce, or all; there is no API {word.strip()!r}")
    return frozenset(found)


class RequestLog:
    """A ``RequestObserver`` that writes lines."""

    def __init__(self, elapsed: Callable[[], float], apis: Iterable[ApiKey]) -> None:
        self.elapsed = elapsed
        self._names = {int(key): key.title for key in apis}

    def observes_each(self, api_key: int) -> bool:
        return api_key in self._names

    def observe_batch(self, key: int, count: int, seconds: float) -> None:
        """No line: requests of the traced APIs are reported one by one."""

    def observe_request(
        self,
        call: NodeCall,
        frame: memoryview,
        response: Any,
        parts: Sequence[Part] | None,
        local: float,
        remote: float,
    ) -> None:
        name = self._names.get(key_and_version(call.key)[0])
        if name is None:
            return
        codes = [] if response is None else error_finder(type(response))(response)
        fields = {
            "api": name,
            "version": call.version,
            "client_id": shortened(call.client_id),
            "peer": call.connection.peer,
            "correlation_id": call.correlation_id,
            "bytes": len(frame),
            "answer_bytes": total_size(parts or ()),
            "local_ms": round(local * 1000, 3),
            "total_ms": round((local + remote) * 1000, 3),
            "errors": [ErrorCode(code).name for code in dict.fromkeys(codes)],
        }
        logger.info("%s", _line(fields), extra={"request": fields})


def _line(fields: dict[str, Any]) -> str:
    shown = fields | {"client_id": repr(fields["client_id"]), "errors": ",".join(fields["errors"]) or "-"}
    return " ".join(f"{name}={value}" for name, value in shown.items())
