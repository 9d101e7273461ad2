"""Log lines about failed metadata fetches from the quorum: one per node and reason, until a fetch succeeds."""

from __future__ import annotations

import logging

from ...base.addresses import join_host_port
from ...base.errors import ErrorCode
from .voters import ControllerAddress

logger = logging.getLogger(__name__)


class FetchReports:
    """See the module."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def fetched(self) -> None:
        """What goes wrong from now on is told again."""
        self._told.clear()

    def failed(self, why: str) -> None:
        """There is no response; ``why`` begins with the node's address."""
        self._log(logging.WARNING, why)

    def refused(self, address: ControllerAddress, code: ErrorCode, why: str) -> None:
        """There is a response, and no later one need differ from it."""
        self._log(logging.ERROR, f"{join_host_port(*address)}: {code.name}: {why}")

    def _log(self, level: int, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            logger.log(level, "No metadata from the controller at %s", reason)
