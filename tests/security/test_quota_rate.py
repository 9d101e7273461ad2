"""How long a client is held up, in the cases that Kafka's own tests name, and by its formula."""

from __future__ import annotations

import pytest

from ottla.security.quota_rate import QuotaRate, TokenBucket


def test_kafkas_own_case_of_a_client_quota() -> None:
    """ClientQuotaManagerTest ``testQuotaViolation``: 10 windows, 500 bytes a second; what was measured there."""
    rate = QuotaRate(11, 1000)
    now = 0
    for _ in range(10):
        rate.record(400, now)
        assert rate.throttle_ms(500, now) == 0
        now += 1000
    now += 500
    rate.record(2300, now)  # half a second of the last window has ended: (4000 + 2300) / 10.5 s is 600 a second
    assert rate.per_second(now) == 600
    assert rate.throttle_ms(500, now) == 2100
    now += 2100
    assert rate.throttle_ms(500, now) == 400  # the first two windows are forgotten, and the slow time with them
    now += 9_000
    assert rate.throttle_ms(500, now) == 0


@pytest.mark.parametrize(
    ("amount", "after_ms", "throttle_ms"),
    [
        (10_000, 0, 0),  # 1,000 a second over the ten windows that are taken to be over
        (10_001, 0, 1),
        (11_000, 0, 1000),
        (20_000, 0, 10_000),
        (20_000, 999, 9_001),  # nine whole windows more than what has passed of the first
    ],
)
def test_a_client_that_begins_is_given_the_windows_before(amount: int, after_ms: int, throttle_ms: int) -> None:
    rate = QuotaRate(11, 1000)
    rate.record(amount, 5_000)
    rate.record(0, 5_000 + after_ms)
    assert rate.throttle_ms(1000, 5_000 + after_ms) == throttle_ms


def test_what_is_taken_back_counts_no_more() -> None:
    rate = QuotaRate(11, 1000)
    rate.record(20_000, 0)
    assert rate.throttle_ms(1000, 0) == 10_000
    rate.record(-20_000, 0)
    assert rate.throttle_ms(1000, 0) == 0


def test_a_longest_time_is_kept_to() -> None:
    rate = QuotaRate(11, 1000)
    rate.record(10_000_000, 0)
    assert rate.throttle_ms(1000, 0, 1000) == 1000
    assert rate.throttle_ms(0, 0, 1000) == 1000
    assert rate.throttle_ms(0, 0) == 0  # Kafka's number overflows
    assert rate.throttle_ms(1e-9, 0) == 2**31 - 1


def test_nothing_is_remembered_after_all_windows() -> None:
    rate = QuotaRate(11, 1000)
    rate.record(1, 0)
    assert not rate.is_idle(10_999)
    assert rate.is_idle(11_000)
    assert rate.throttle_ms(0.01, 11_000) == 0


def test_a_bucket_is_overdrawn_once_and_refilled_at_the_limits_pace() -> None:
    """Kafka's own example in TokenBucket: 5 a second, 100 windows of a second, 560 at once: 12 seconds."""
    bucket = TokenBucket(100, 1000)
    assert bucket.left(5, 0) == 500
    bucket.take(560, 5, 0)
    assert bucket.left(5, 0) == -60
    assert bucket.throttle_ms(5, 0) == 12_000
    assert bucket.throttle_ms(5, 11_900) == 100
    assert bucket.throttle_ms(5, 12_000) == 0
    assert bucket.left(5, 1_000_000) == 500
    assert bucket.is_full(5, 1_000_000)


@pytest.mark.parametrize("limit", [0.0, -5.0])
def test_a_bucket_that_is_never_refilled_holds_nobody_up(limit: float) -> None:
    bucket = TokenBucket(10, 1000)
    bucket.take(1, limit, 0)
    assert bucket.left(limit, 1_000_000) < 0
    assert bucket.throttle_ms(limit, 1_000_000) == 0


def test_a_bucket_shrinks_with_its_limit() -> None:
    bucket = TokenBucket(10, 1000)
    assert bucket.left(5, 0) == 50
    assert bucket.left(2, 0) == 20
    bucket.take(21, 2, 0)
    assert bucket.throttle_ms(2, 0) == 500
