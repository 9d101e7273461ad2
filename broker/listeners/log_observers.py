"""The observers of requests that write log lines: for each request of a traced API, and for refusals at debug level."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...handlers.call import RequestObserver
from ...wire.api_keys import ApiKey
from .refusal_log import RefusalLog


def log_observers(elapsed: Callable[[], float], traced: Collection[ApiKey]) -> list[RequestObserver]:
    """Those that are wanted, maybe none."""
    observers: list[RequestObserver] = []
    if traced:
        from .request_log import RequestLog  # few nodes trace

        observers.append(RequestLog(elapsed, traced))
    if RefusalLog.is_wanted():
        observers.append(RefusalLog(elapsed))
    return observers
