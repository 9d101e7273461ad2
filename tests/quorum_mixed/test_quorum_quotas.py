"""Brokers of both kinds in a cluster of KRaft hold clients to the same quotas in the same way."""

from __future__ import annotations

import pytest

from ..mixed.test_mixed_cluster import test_the_same_load_is_held_up_for_as_long_by_either_kind

__all__ = ["test_the_same_load_is_held_up_for_as_long_by_either_kind"]

pytestmark = pytest.mark.slow
