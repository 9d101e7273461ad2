"""What a user is told of a broker that does not start because the cluster's store does not serve it."""

from __future__ import annotations

from ...log.log_directories import LogStartError
from .store.cluster_store import StoreError


def unserved(error: StoreError) -> LogStartError:
    """Another start may succeed."""
    return LogStartError(f"the cluster store does not serve this broker: {error}", may_pass=True)
