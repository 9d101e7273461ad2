"""Metric families with their samples, in the form that prometheus-client encodes."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ...base.distribution import Distribution
from .families.family import Family, MetricType

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]
"""Label values and a value."""
Buckets = Iterable[tuple[Labels, Iterable[float], Iterable[int], float]]
"""Label values, bounds, cumulative counts (one more than bounds: the last is the total), and the sum."""


def single(family: Family, value: float) -> Metric:
    """A family without labels."""
    return simple(family, [((), value)])


def simple(family: Family, samples: Samples) -> Metric:
    """A counter or gauge."""
    metric: CounterMetricFamily | GaugeMetricFamily
    if family.kind is MetricType.COUNTER:
        metric = CounterMetricFamily(family.name, family.meaning, labels=family.labels)
    else:
        metric = GaugeMetricFamily(family.name, family.meaning, labels=family.labels)
    for labels, value in samples:
        metric.add_metric(labels, value)
    return metric


def with_total(family: Family, samples: Samples, total: float) -> Metric:
    """A counter by topic, with a sample for all topics that has no label, as in Kafka."""
    metric = CounterMetricFamily(family.name, family.meaning, labels=family.labels)
    metric.add_sample(family.name, {}, total)
    for labels, value in samples:
        metric.add_metric(labels, value)
    return metric


def distributions(family: Family, found: Iterable[tuple[Labels, Distribution]]) -> Metric:
    """A histogram of values that a ``Distribution`` has counted."""
    return histogram(family, [(labels, each.bounds, each.cumulative(), each.sum) for labels, each in found])


def histogram(family: Family, samples: Buckets) -> Metric:
    metric = HistogramMetricFamily(family.name, family.meaning, labels=family.labels)
    for labels, bounds, cumulative, total in samples:
        names = [*map(str, bounds), "+Inf"]
        metric.add_metric(labels, list(zip(names, cumulative, strict=True)), sum_value=total)
    return metric
