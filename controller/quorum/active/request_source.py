"""The source of a request to the active controller: the client's principal and its permissions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ....security.principal import ANONYMOUS, Principal
from ...new_topics import Charge


def _may(name: str) -> bool:
    return True


def _may_alter(kind: int, name: str) -> None:
    """Everybody may."""


def _free(partitions: int) -> None:
    """Nothing is charged."""


@dataclasses.dataclass(frozen=True)
class RequestSource:
    """Who asks, in which version of the request, and what that client may. By default it may everything, as a node may."""

    version: int
    principal: Principal = ANONYMOUS
    is_forwarded: bool = False
    """Whether a client has asked a broker, which has the controller do it."""
    may_create: Callable[[str], bool] = _may
    """By the name of a topic, as the others."""
    may_describe: Callable[[str], bool] = _may
    may_alter: Callable[[str], bool] = _may
    may_delete: Callable[[str], bool] = _may
    check_config_right: Callable[[int, str], None] = _may_alter
    """Raises KafkaError where the configs of a resource, by type and name, are not the client's to alter."""
    charge: Charge = _free
