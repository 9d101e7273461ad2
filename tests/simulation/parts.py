"""The seeds of a simulation as several tests, of which `make test` has a share."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet


def parts_of(count: int, share: int) -> list[ParameterSet]:
    """So many parts for ``parametrize``. Those beyond the share are in their lane only, for all of them take minutes."""
    beyond = pytest.mark.in_lane_only
    return [pytest.param(part, marks=beyond if part >= share else ()) for part in range(count)]
