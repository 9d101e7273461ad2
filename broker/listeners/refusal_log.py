"""Debug log lines for requests that are answered with an error, with the reason.

The level is checked once, at the start of the broker, so that requests cost nothing at other levels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import ErrorCode
from ...base.network import Part
from ...base.wording import shortened
from ...handlers.call import TELLING, NodeCall
from ...wire.api_keys import ApiKey
from ...wire.error_codes import error_finder, error_messages
from ...wire.headers import key_and_version

logger = logging.getLogger(__name__)

_MOST_REASONS = 3


class RefusalLog:
    """A ``RequestObserver`` that writes lines."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self.elapsed = elapsed

    @staticmethod
    def is_wanted() -> bool:
        """Whether its lines would be seen."""
        return logger.isEnabledFor(logging.DEBUG)

    def observes_each(self, api_key: int) -> bool:
        """True where the response has to be searched for errors."""
        return api_key not in TELLING

    def observe_batch(self, key: int, count: int, seconds: float) -> None:
        """No line: requests reported this way have not failed."""

    def observe_request(
        self,
        call: NodeCall,
        frame: memoryview,
        response: Any,
        parts: Sequence[Part] | None,
        local: float,
        remote: float,
    ) -> None:
        if response is None or not (call.failed or self.observes_each(key_and_version(call.key)[0])):
            return
        codes = error_finder(type(response))(response)
        if not codes:
            return
        names = ", ".join(ErrorCode(code).name for code in dict.fromkeys(codes))
        reasons = dict.fromkeys([call.reason] if call.reason else error_messages(response))
        why = "".join(f"; {shortened(reason)}" for reason in list(reasons)[:_MOST_REASONS])
        name = ApiKey(key_and_version(call.key)[0]).title
        logger.debug(
            "%s version %d of %r at %s: %s%s",
            *(name, call.version, shortened(call.client_id), call.connection.peer, names, why),
        )
