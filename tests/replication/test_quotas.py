"""Rates of replication and their limits, by a clock that the test sets."""

from __future__ import annotations

import pytest

from ottla.log.settings import LONG_MAX, LogSettings
from ottla.replication.quotas import Quota, ReplicationQuotas
from ottla.replication.settings import QuotaSettings

START = 100.0


def moving(seconds: float, per_second: int, limit: int = LONG_MAX) -> Quota:
    """A quota whose rate was the same for so long, in ten pieces a second."""
    quota = Quota(11, 1)
    quota.limit = limit
    for number in range(int(seconds * 10)):
        quota.record(per_second // 10, START + number / 10)
    return quota


@pytest.mark.parametrize("seconds", [1, 5, 10, 60])
def test_a_steady_rate_is_what_it_is(seconds: int) -> None:
    assert moving(seconds, 1000).rate(START + seconds) == pytest.approx(1000, rel=0.02)


def test_nothing_moved_is_no_rate() -> None:
    assert Quota(11, 1).rate(START) == 0
    assert moving(60, 1000).rate(START + 60 + 11) == 0


def test_one_piece_counts_as_if_it_had_taken_a_window() -> None:
    quota = Quota(11, 1)
    quota.record(500, START)
    assert quota.rate(START) == quota.rate(START + 0.9) == 500
    assert quota.rate(START + 2) == 250


def test_without_a_limit_nothing_waits() -> None:
    assert not moving(10, 1 << 40).is_exceeded(START + 10)


def test_what_exceeds_the_limit_waits_until_it_is_the_limit() -> None:
    quota = Quota(11, 1)
    quota.limit = 100
    quota.record(500, START)
    pause = quota.seconds_exceeded(START)
    assert pause == pytest.approx(5)
    assert quota.is_exceeded(START + pause - 0.01)
    assert not quota.is_exceeded(START + pause + 0.01)


def test_a_limit_that_is_changed_holds_at_once() -> None:
    quota = moving(10, 1000, limit=2000)
    assert not quota.is_exceeded(START + 10)
    quota.limit = 500
    assert quota.is_exceeded(START + 10)


def test_a_limit_of_nothing_lets_through_what_nothing_came_before() -> None:
    quota = Quota(11, 1)
    quota.limit = 0
    assert not quota.is_exceeded(START)
    quota.record(1, START)
    assert quota.seconds_exceeded(START) == pytest.approx(11)
    assert not quota.is_exceeded(START + 11)


def test_windows_and_limits_are_those_of_the_settings() -> None:
    wide = {"replication.quota.window.num": "2", "replication.quota.window.size.seconds": "5"}
    quotas = ReplicationQuotas(QuotaSettings.from_properties(wide | {"leader.replication.throttled.rate": "10"}))
    assert (quotas.leader.limit, quotas.follower.limit, quotas.log_dirs.limit) == (10, LONG_MAX, LONG_MAX)
    for quota in (quotas.follower, quotas.log_dirs):
        quota.record(100, START)
    assert (quotas.follower.rate(START), quotas.log_dirs.rate(START)) == (20, 100)
    quotas.update(QuotaSettings({"follower_replication_throttled_rate": 7}))
    assert (quotas.leader.limit, quotas.follower.limit) == (LONG_MAX, 7)


def test_replicas_that_a_topic_lists() -> None:
    settings = LogSettings().with_topic_overrides(
        {"leader.replication.throttled.replicas": "0:1,12:2", "follower.replication.throttled.replicas": "*"}
    )
    assert (0, 1) in settings.throttled_on_leader and (12, 2) in settings.throttled_on_leader
    assert (0, 2) not in settings.throttled_on_leader
    assert (7, 9) in settings.throttled_on_follower
    assert (0, 1) not in LogSettings().throttled_on_leader
