"""The declaration of a metric, for the other modules of this folder."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class MetricType(enum.Enum):
    """The kind of a metric; the value is Prometheus' name for it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclasses.dataclass(frozen=True)
class Family:
    """One metric."""

    name: str
    kind: MetricType
    labels: tuple[str, ...]
    meaning: str
    kafka: str = ""
    """Kafka's bean, or another program that has the metric under this name; empty for Ottla's own."""


def counter(name: str, labels: str, meaning: str, kafka: str = "") -> Family:
    return Family(name, MetricType.COUNTER, tuple(labels.split()), meaning, kafka)


def gauge(name: str, labels: str, meaning: str, kafka: str = "") -> Family:
    return Family(name, MetricType.GAUGE, tuple(labels.split()), meaning, kafka)


def histogram(name: str, labels: str, meaning: str, kafka: str) -> Family:
    return Family(name, MetricType.HISTOGRAM, tuple(labels.split()), meaning, kafka)


def families_of(names: Mapping[str, object]) -> tuple[Family, ...]:
    """The families among the names of a module, in their order there."""
    return tuple(value for value in names.values() if isinstance(value, Family))
