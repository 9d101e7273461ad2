"""Write and read rates of partitions, in bytes per second, over a window of time.

Leaders' offsets and groups' committed ones are looked at twice; a record counts with as many bytes as the partition's records
had on average when the window began. Where brokers' Prometheus metrics are named, the bytes of a topic are those that they
count, spread over its partitions as the offsets say.
"""

from __future__ import annotations

import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import NamedTuple

import kafka.errors
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from ...balance.model import Key
from ..tools.client import Admin
from ..tools.running import ToolError

_SCRAPE_S = 10
_WRITTEN = "kafka_server_brokertopicmetrics_bytesin_total"
_READ = "kafka_server_brokertopicmetrics_bytesout_total"


class PartitionRates(NamedTuple):
    """Bytes per second of producers and consumers."""

    written: int
    read: int


class _OffsetSample(NamedTuple):
    """Of one moment: end offsets, committed offsets summed over groups, and bytes of topics by metric."""

    ends: Mapping[Key, int]
    read: Mapping[Key, int]
    metrics: Mapping[str, Mapping[str, float]]


class MeasurementWindow(NamedTuple):
    """How long to measure, 0 for not at all, and the addresses of metrics."""

    seconds: float
    metrics: tuple[str, ...] = ()
    sleep: Callable[[float], None] = time.sleep

    def measure(self, admin: Admin, sizes: Mapping[Key, int]) -> dict[Key, PartitionRates]:
        """Rates by partition; none for those that brokers don't tell. Raises ToolError."""
        if self.seconds <= 0 or not sizes:
            return {}
        began = time.monotonic()
        first = self._sample(admin, sizes)
        # Now, for ``sizes`` are of now: a partition may have many times as many records when the window ends.
        starts = _offsets(admin, sizes, OffsetSpec.EARLIEST)
        self.sleep(self.seconds)
        passed = time.monotonic() - began
        second = self._sample(admin, sizes)
        each = {key: sizes[key] / max(end - starts.get(key, 0), 1) for key, end in first.ends.items()}
        written = _grown(first.ends, second.ends, each, passed)
        read = _grown(first.read, second.read, each, passed)
        for rates, name in ((written, _WRITTEN), (read, _READ)):
            _spread(rates, _topic_rates(first.metrics.get(name, {}), second.metrics.get(name, {}), passed))
        return {key: PartitionRates(round(written.get(key, 0)), round(read.get(key, 0))) for key in sizes}

    def _sample(self, admin: Admin, keys: Mapping[Key, int]) -> _OffsetSample:
        return _OffsetSample(_offsets(admin, keys, OffsetSpec.LATEST), _committed(admin), _scraped(self.metrics))


def _offsets(admin: Admin, keys: Mapping[Key, int], spec: int) -> dict[Key, int]:
    try:
        found = admin.list_partition_offsets({TopicPartition(*key): spec for key in keys})
    except kafka.errors.KafkaError:
        return {}  # a leader is away; there is no rate then
    return {(where.topic, where.partition): max(at.offset, 0) for where, at in found.items()}


def _committed(admin: Admin) -> Counter[Key]:
    """What groups have read, together."""
    total: Counter[Key] = Counter()
    try:
        groups = sorted({found["group_id"] for found in admin.list_groups()})
        for group in groups:
            for where, at in admin.list_group_offsets({group: None})[group].items():
                total[where.topic, where.partition] += max(at.offset, 0)
    except kafka.errors.KafkaError:
        return Counter()
    return total


def _grown(
    first: Mapping[Key, int], second: Mapping[Key, int], each: Mapping[Key, float], seconds: float
) -> dict[Key, float]:
    return {
        key: max(second[key] - before, 0) * each.get(key, 0.0) / seconds
        for key, before in first.items()
        if key in second
    }


def _topic_rates(first: Mapping[str, float], second: Mapping[str, float], seconds: float) -> dict[str, float]:
    return {topic: max(second[topic] - before, 0) / seconds for topic, before in first.items() if topic in second}


def _spread(rates: dict[Key, float], by_topic: Mapping[str, float]) -> None:
    """The metrics' bytes of a topic take the place of those that offsets say, in the same proportion, or evenly."""
    partitions: dict[str, list[Key]] = {}
    for key in rates:
        partitions.setdefault(key[0], []).append(key)
    for topic, rate in by_topic.items():
        keys = partitions.get(topic, [])
        total = sum(rates[key] for key in keys)
        for key in keys:
            rates[key] = rate * (rates[key] / total if total else 1 / len(keys))


def _scraped(addresses: Sequence[str]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {_WRITTEN: {}, _READ: {}}
    for address in addresses:
        url = address if "://" in address else f"http://{address}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=_SCRAPE_S) as answer:
                text = answer.read().decode()
        except (OSError, ValueError, HTTPException) as error:
            raise ToolError(f"{url} gives no metrics: {error}") from None
        for name, topic, value in topic_values(text):
            if name in found:
                found[name][topic] = found[name].get(topic, 0) + value
    return found


def topic_values(text: str) -> list[tuple[str, str, float]]:
    """The samples of a page of metrics that are for a topic: name, topic and value."""
    found = []
    for line in text.splitlines():
        name, brace, rest = line.partition("{")
        labels, closed, value = rest.partition("}")
        if brace and closed and not line.startswith("#"):
            for label in labels.split(","):
                key, _, quoted = label.partition("=")
                if key.strip() == "topic":
                    found.append((name, quoted.strip().strip('"'), float(value.split()[0])))
    return found
