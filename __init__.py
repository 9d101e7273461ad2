"""Ottla: a Kafka wire-compatible broker in Python on trio.

``with ottla.Broker() as broker:`` runs one for any program or test, ``with ottla.Cluster() as cluster:`` three that replicate;
``async with ottla.open_broker() as broker:`` runs one inside a trio program. Each gives ``bootstrap_servers``. Names are
imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .broker.embedded import RunningBroker, open_broker
    from .testing.broker import Broker
    from .testing.cluster import Cluster
    from .testing.expected_records import ExpectedRecord

__all__ = ["Broker", "Cluster", "ExpectedRecord", "RunningBroker", "open_broker"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Broker":
        from .testing.broker import Broker

        return Broker
    if name == "Cluster":
        from .testing.cluster import Cluster

        return Cluster
    if name == "ExpectedRecord":
        from .testing.expected_records import ExpectedRecord

        return ExpectedRecord
    if name in __all__:
        from .broker import embedded

        return getattr(embedded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
