"""What a family of metrics is, and how the modules beside this one write theirs down."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class Kind(enum.Enum):
    """The value is Prometheus' name."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclasses.dataclass(frozen=True)
class Family:
    """One metric. ``kafka`` is the bean, or whose name it is; empty for what only Ottla has."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    kafka: str = ""


def counter(name: str, labels: str, meaning: str, kafka: str = "") -> Family:
    return Family(name, Kind.COUNTER, tuple(labels.split()), meaning, kafka)


def gauge(name: str, labels: str, meaning: str, kafka: str = "") -> Family:
    return Family(name, Kind.GAUGE, tuple(labels.split()), meaning, kafka)


def histogram(name: str, labels: str, meaning: str, kafka: str) -> Family:
    return Family(name, Kind.HISTOGRAM, tuple(labels.split()), meaning, kafka)


def families_of(names: Mapping[str, object]) -> tuple[Family, ...]:
    """Those among the names of a module, in their order there."""
    return tuple(value for value in names.values() if isinstance(value, Family))
