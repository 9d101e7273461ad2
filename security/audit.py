"""The authorizer's audit log, in Kafka's wording: denied operations, and at debug level allowed ones.

Its logger has Kafka's name, for tools that read such a log. A client can cause denials as often as it likes; so within a minute
the same denial has one line, and there are at most ``MOST_LINES`` lines. After the minute a line says how many more there were.
Long names are shortened, also in the count of denials.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..base.wording import shortened
from .acl import Operation, ResourceType, code_name

logger = logging.getLogger("kafka.authorizer.logger")

MOST_LINES = 1000
_WINDOW_SECONDS = 60.0

Denial = tuple[str, str, Operation, ResourceType, str, str]
"""Principal, host, operation, type and name of the resource, and the request's name."""


class AuditLog:
    """The log of decisions. ``elapsed`` returns the seconds of a clock that never goes back."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._since = elapsed()
        self._seen: set[Denial] = set()
        self._unsaid = 0

    @property
    def tells_allowed(self) -> bool:
        return logger.isEnabledFor(logging.DEBUG)

    def denied(self, denial: Denial) -> None:
        denial = _shortened(denial)
        now = self._elapsed()
        if now - self._since >= _WINDOW_SECONDS:
            self._sum_up()
            self._since = now
        if denial in self._seen or len(self._seen) >= MOST_LINES:
            self._unsaid += 1
            return
        self._seen.add(denial)
        logger.info(_line(denial, "Denied"))

    def allowed(self, access: Denial) -> None:
        logger.debug(_line(_shortened(access), "Allowed"))

    def _sum_up(self) -> None:
        if self._unsaid:
            logger.info("%d more requests were denied, most of them like those before", self._unsaid)
        self._seen.clear()
        self._unsaid = 0


def _shortened(access: Denial) -> Denial:
    principal, host, operation, resource_type, name, request = access
    return shortened(principal), host, operation, resource_type, shortened(name), request


def _line(access: Denial, outcome: str) -> str:
    principal, host, operation, resource_type, name, request = access
    line = (
        f"Principal = {principal} is {outcome} Operation = {code_name(operation)} from host = {host} "
        f"on resource = {code_name(resource_type)}:LITERAL:{name} for request = {request} with resourceRefCount = 1"
    )
    # Names come from clients: characters that would end the line, or move the terminal's cursor, are escaped.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
