"""The startup error of a broker that the cluster store does not serve."""

from __future__ import annotations

from ...log.log_directories import LogStartError
from .store.cluster_store import StoreError


def unserved(error: StoreError) -> LogStartError:
    """Another start may succeed."""
    return LogStartError(f"the cluster store does not serve this broker: {error}", may_pass=True)
