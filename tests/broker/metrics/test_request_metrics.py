"""Histograms of request times put together from those that waited and those that did not."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.metrics.request_metrics import BOUNDS_MS, RequestMetrics
from ottla.handlers.call import Call
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_groups import ListGroupsResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


class Requests:
    """Answers requests at times that are given, in milliseconds."""

    def __init__(self) -> None:
        self._now = 1000.0
        self.metrics = RequestMetrics(lambda: self._now)

    def answer(
        self, key: ApiKey, version: int, response: Any, local_ms: float, remote_ms: float = 0.0, *, failed: bool = False
    ) -> None:
        call = Call(None, "", "", self._never, self.metrics)  # type: ignore[arg-type]
        call.version, call.started, call.failed = version, self._now, failed
        self._now += local_ms / 1000
        if remote_ms:
            call.waited_since = self._now
            self._now += remote_ms / 1000
        self.metrics.observation(int(key), version)(call, memoryview(b""), response, [])

    async def _never(self) -> None:
        raise AssertionError


def at_most(cumulative: list[int], bound_ms: float) -> int:
    return cumulative[BOUNDS_MS.index(bound_ms)]


@pytest.mark.parametrize("settle_between", [True, False])
def test_histograms_hold_both_kinds_of_requests(settle_between: bool) -> None:
    requests = Requests()
    for version, local_ms, remote_ms in ((11, 0.3, 0), (11, 0.3, 0), (12, 7, 0), (12, 0.3, 700), (11, 60_000, 0)):
        requests.answer(ApiKey.PRODUCE, version, None, local_ms, remote_ms)
        if settle_between:
            requests.metrics.settle()
    requests.metrics.settle()
    ((api_key, (total, local, remote)),) = requests.metrics.histograms()
    assert api_key == ApiKey.PRODUCE
    assert list(requests.metrics.counts()) == [(0, 11, 3), (0, 12, 2)]
    for histogram in (total, local, remote):
        assert len(histogram.cumulative) == len(BOUNDS_MS) + 1
        assert histogram.cumulative == sorted(histogram.cumulative)
        assert histogram.cumulative[-1] == 5
    assert [at_most(total.cumulative, bound) for bound in (0.25, 0.5, 10, 500, 1000, 30_000)] == [0, 2, 3, 3, 4, 4]
    assert [at_most(local.cumulative, bound) for bound in (0.25, 0.5, 10, 30_000)] == [0, 3, 4, 4]
    assert [at_most(remote.cumulative, bound) for bound in (0.05, 500, 1000)] == [4, 4, 5]
    assert total.sum_ms == pytest.approx(60_707.9)
    assert local.sum_ms == pytest.approx(60_007.9)
    assert remote.sum_ms == pytest.approx(700)


def test_errors_are_looked_for_where_nobody_tells_of_them() -> None:
    requests = Requests()
    requests.answer(ApiKey.LIST_GROUPS, 3, ListGroupsResponse(error_code=15), 1)
    requests.answer(ApiKey.LIST_GROUPS, 3, ListGroupsResponse(), 1)
    partitions = [PartitionProduceResponse(index=0, error_code=3), PartitionProduceResponse(index=1)]
    response = ProduceResponse(responses=[TopicProduceResponse(partition_responses=partitions)])
    requests.answer(ApiKey.PRODUCE, 11, response, 1, failed=True)
    assert requests.metrics.errors == {(ApiKey.LIST_GROUPS, 15): 1, (ApiKey.PRODUCE, 3): 1}
