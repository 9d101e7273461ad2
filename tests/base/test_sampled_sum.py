"""Sums over windows, against Kafka's own way of keeping them, said again naively."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.base.sampled_sum import SampledSum


class Ring:
    """Kafka's SampledStat to the letter: a ring of samples, reset in place, one more of them than there are windows."""

    def __init__(self, samples: int, window: int) -> None:
        self.samples, self.window = samples, window
        self.ring: list[list[int]] = []  # [began, ended, amount]
        self.current = 0

    def record(self, amount: int, now: int) -> None:
        if not self.ring:
            self.ring.append([now, now, 0])
        sample = self.ring[self.current]
        if now - sample[0] >= self.window:
            self.current = (self.current + 1) % (self.samples + 1)
            if self.current >= len(self.ring):
                self.ring.append([now, now, 0])
            sample = self.ring[self.current]
            if sample[0] != now or sample[2]:
                sample[:] = [now, now, 0]
        sample[1] = now
        sample[2] += amount

    def total(self, now: int) -> int:
        for sample in self.ring:
            if now - sample[1] >= self.samples * self.window:
                sample[:] = [now, now, 0]
        return sum(sample[2] for sample in self.ring)


@given(
    samples=st.integers(1, 12),
    window=st.integers(1, 100),
    steps=st.lists(st.tuples(st.integers(0, 250), st.integers(-50, 1000)), max_size=60),
)
def test_the_sum_is_kafkas(samples: int, window: int, steps: list[tuple[int, int]]) -> None:
    ours, kafkas = SampledSum(samples, window), Ring(samples, window)
    now = 1_000
    for pause, amount in steps:
        now += pause
        ours.record(amount, now)
        kafkas.record(amount, now)
        assert ours.total(now) == kafkas.total(now)


def test_a_sample_counts_until_its_last_record_is_too_old() -> None:
    recorded = SampledSum(2, 10)
    recorded.record(5, 0)
    recorded.record(6, 9)
    assert recorded.total(28) == 11
    assert recorded.total(29) == 0
    assert recorded.is_empty
