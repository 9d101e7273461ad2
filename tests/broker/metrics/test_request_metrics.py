"""Histograms of request times put together from those that waited and those that did not."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.distribution import TIME_BOUNDS_MS
from ottla.broker.metrics.request_metrics import RequestMetrics
from ottla.handlers.call import Call
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_groups import ListGroupsResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


class Requests:
    """One connection whose requests take times that are given, in milliseconds, on a clock that stands still between."""

    def __init__(self) -> None:
        self._now = 1000.0
        self.metrics = RequestMetrics(lambda: self._now)
        self._call = Call(None, None, self._send_nothing, self.metrics)  # type: ignore[arg-type]
        self._call.start_turn(self._now)

    async def answer(
        self, key: ApiKey, version: int, response: Any, local_ms: float, remote_ms: float = 0.0, *, failed: bool = False
    ) -> None:
        """Do with the call what dispatch, a handler and the connection do."""
        call = self._call
        if (kind := int(key) << 16 | version) != call.key:
            call.switch_api(kind, int(key))
        elif not call.is_plain:
            call.reset()
        self._now += local_ms / 1000
        if remote_ms:
            await call.flush()
            self._now += remote_ms / 1000
        if failed:
            call.fail()
        if call.is_plain:
            call.answered_count += 1
        else:
            call.report_request(memoryview(b""), response, [])

    def end_turn(self) -> None:
        """What was read is answered."""
        self._call.report_batch()

    async def _send_nothing(self) -> None:
        pass


def at_most(cumulative: list[int], bound_ms: float) -> int:
    return cumulative[TIME_BOUNDS_MS.index(bound_ms)]


async def test_histograms_hold_both_kinds_of_requests() -> None:
    requests = Requests()
    for version, local_ms, remote_ms in ((11, 0.3, 0), (11, 0.3, 0), (12, 7, 0), (12, 0.3, 700), (11, 60_000, 0)):
        await requests.answer(ApiKey.PRODUCE, version, None, local_ms, remote_ms)
        requests.end_turn()
    ((api_key, (total, local, remote)),) = requests.metrics.histograms()
    assert api_key == ApiKey.PRODUCE
    assert list(requests.metrics.counts()) == [(0, 11, 3), (0, 12, 2)]
    for histogram in (total, local, remote):
        assert len(histogram.cumulative) == len(TIME_BOUNDS_MS) + 1
        assert histogram.cumulative == sorted(histogram.cumulative)
        assert histogram.cumulative[-1] == 5
    assert [at_most(total.cumulative, bound) for bound in (0.25, 0.5, 10, 500, 1000, 30_000)] == [0, 2, 3, 3, 4, 4]
    assert [at_most(local.cumulative, bound) for bound in (0.25, 0.5, 10, 30_000)] == [0, 3, 4, 4]
    assert [at_most(remote.cumulative, bound) for bound in (0.05, 500, 1000)] == [4, 4, 5]
    assert total.sum_ms == pytest.approx(60_707.9)
    assert local.sum_ms == pytest.approx(60_007.9)
    assert remote.sum_ms == pytest.approx(700)


async def test_requests_read_together_count_with_the_mean_of_their_kind() -> None:
    requests = Requests()
    for version, local_ms, remote_ms in ((11, 1, 0), (11, 3, 0), (12, 40, 0), (12, 0, 0), (12, 20, 200), (12, 7, 0)):
        await requests.answer(ApiKey.PRODUCE, version, None, local_ms, remote_ms)
    requests.end_turn()
    assert list(requests.metrics.counts()) == [(0, 11, 2), (0, 12, 4)]
    ((_, (total, local, remote)),) = requests.metrics.histograms()
    assert total.sum_ms == pytest.approx(271)
    assert local.sum_ms == pytest.approx(71)
    assert remote.sum_ms == pytest.approx(200)
    # Two of 2 ms; two of 20 ms before the one that waited, which has as much of its own; one of 7 ms.
    assert [at_most(local.cumulative, bound) for bound in (1, 2.5, 5, 10, 25)] == [0, 2, 2, 3, 6]
    assert [at_most(remote.cumulative, bound) for bound in (0.05, 100, 250)] == [5, 5, 6]


async def test_errors_are_looked_for_where_nobody_tells_of_them() -> None:
    requests = Requests()
    await requests.answer(ApiKey.LIST_GROUPS, 3, ListGroupsResponse(error_code=15), 1)
    await requests.answer(ApiKey.LIST_GROUPS, 3, ListGroupsResponse(), 1)
    partitions = [PartitionProduceResponse(index=0, error_code=3), PartitionProduceResponse(index=1)]
    response = ProduceResponse(responses=[TopicProduceResponse(partition_responses=partitions)])
    await requests.answer(ApiKey.PRODUCE, 11, response, 1, failed=True)
    requests.end_turn()
    assert requests.metrics.errors == {(ApiKey.LIST_GROUPS, 15): 1, (ApiKey.PRODUCE, 3): 1}
    assert list(requests.metrics.counts()) == [(0, 11, 1), (16, 3, 2)]
