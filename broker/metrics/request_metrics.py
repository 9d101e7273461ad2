"""Counts and times of requests, by API and version.

This code runs for each request when metrics are on.

Times are Kafka's: *total* from the start of the handling until the response is ready, *local* the part before the handler
first waits for something, *remote* the part from then on. Most requests never wait: then total and local are the same and
remote is 0. For these one bucket is counted instead of three; and requests that were read together are counted together
(``RequestObserver``), each with the mean time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ...base.distribution import TIME_BOUNDS_MS
from ...base.errors import ErrorCode
from ...base.network import Part
from ...handlers.call import TELLING, NodeCall
from ...wire.error_codes import FindErrors, error_finder
from ...wire.headers import key_and_version

_BOUNDS = tuple(bound / 1000 for bound in TIME_BOUNDS_MS)


class Histogram(NamedTuple):
    """Times as Prometheus has them."""

    cumulative: list[int]
    """For each bound, how many times were within it; the last is the total."""
    sum_ms: float
    """The sum of the times, in milliseconds."""


class RequestTimes:
    """The times of one API at one version. A bucket has the index of its bound; the last one is for times beyond all bounds."""

    __slots__ = ("at_once", "at_once_seconds", "find_errors", "local", "remote", "seconds", "total")

    def __init__(self) -> None:
        self.at_once = [0] * (len(_BOUNDS) + 1)
        """Requests that did not wait: their total and local times are the same."""
        self.at_once_seconds = 0.0
        self.total = [0] * (len(_BOUNDS) + 1)
        """Requests that waited, as ``local`` and ``remote``."""
        self.local = [0] * (len(_BOUNDS) + 1)
        self.remote = [0] * (len(_BOUNDS) + 1)
        self.seconds = [0.0, 0.0, 0.0]
        """The sums of total, local and remote times of requests that waited."""
        self.find_errors: FindErrors | None = None

    def waited(self, local: float, remote: float) -> None:
        """Count a request that waited; times in seconds."""
        for buckets, slot, took in ((self.total, 0, local + remote), (self.local, 1, local), (self.remote, 2, remote)):
            buckets[bisect_left(_BOUNDS, took)] += 1
            self.seconds[slot] += took

    @property
    def count(self) -> int:
        return sum(self.at_once) + sum(self.total)


class RequestMetrics:
    """A ``RequestObserver`` that counts."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self.elapsed = elapsed
        self.errors: Counter[tuple[int, int]] = Counter()
        """By API key and error code."""
        self._times: defaultdict[int, RequestTimes] = defaultdict(RequestTimes)

    def observes_each(self, api_key: int) -> bool:
        """Whether the response has to be searched for errors."""
        return api_key not in TELLING

    def observe_batch(self, key: int, count: int, seconds: float) -> None:
        times = self._times[key]
        times.at_once[bisect_left(_BOUNDS, seconds / count)] += count
        times.at_once_seconds += seconds

    def observe_request(
        self,
        call: NodeCall,
        frame: memoryview,
        response: Any,
        parts: Sequence[Part] | None,
        local: float,
        remote: float,
    ) -> None:
        api_key, _ = key_and_version(call.key)
        times = self._times[call.key]
        if call.error_counts is not None:
            for code, count in call.error_counts.items():
                self.errors[api_key, code] += count
        elif response is not None and (call.failed or api_key not in TELLING):
            if times.find_errors is None:
                times.find_errors = error_finder(type(response))
            for code in times.find_errors(response):
                self.errors[api_key, code] += 1
        if remote:
            times.waited(local, remote)
        else:
            self.observe_batch(call.key, 1, local)

    def counts(self) -> Iterator[tuple[int, int, int]]:
        """API key, version, and how many requests there were."""
        for key, times in sorted(self._times.items()):
            yield (*key_and_version(key), times.count)

    def histograms(self) -> Iterator[tuple[int, tuple[Histogram, Histogram, Histogram]]]:
        """API key, and its total, local and remote times."""
        by_api: dict[int, list[RequestTimes]] = {}
        for key, times in sorted(self._times.items()):
            by_api.setdefault(key_and_version(key)[0], []).append(times)
        for api_key, versions in by_api.items():
            at_once = _sum(times.at_once for times in versions)
            at_once_seconds = sum(times.at_once_seconds for times in versions)
            seconds = [sum(times.seconds[slot] for times in versions) for slot in range(3)]
            total = _sum([at_once, *(times.total for times in versions)])
            local = _sum([at_once, *(times.local for times in versions)])
            nothing = [sum(at_once)] + [0] * len(_BOUNDS)
            remote = _sum([nothing, *(times.remote for times in versions)])
            yield (
                api_key,
                (
                    _histogram(total, at_once_seconds + seconds[0]),
                    _histogram(local, at_once_seconds + seconds[1]),
                    _histogram(remote, seconds[2]),
                ),
            )


def _sum(rows: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _histogram(buckets: list[int], seconds: float) -> Histogram:
    return Histogram(list(accumulate(buckets)), seconds * 1000)


def error_name(code: int) -> str:
    """The name of an error code, as Kafka's metrics label it."""
    return ErrorCode(code).name
