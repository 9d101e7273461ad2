"""The assignors there are, and which one of them a group uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .assignor import Assignor
from .range import RangeAssignor
from .uniform import UniformAssignor

_ASSIGNORS: Mapping[str, Assignor] = {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}


def supported() -> tuple[str, ...]:
    """Names, the default one first."""
    return tuple(_ASSIGNORS)


def assignor_of_group(preferred: str | None, configured: Sequence[str]) -> Assignor:
    """The assignor that most members ask for, or else the first of the configured ones.

    The broker may have been configured anew since the members asked.
    """
    return _ASSIGNORS[configured[0] if preferred is None or preferred not in configured else preferred]
