"""Wordings that messages share."""

from __future__ import annotations

from ottla.base.wording import meant, plural


def test_a_noun_behind_a_number() -> None:
    assert [f"{number} {plural(number, 'member')}" for number in (0, 1, 2)] == ["0 members", "1 member", "2 members"]
    assert [plural(number, "batch", "batches") for number in (1, 2)] == ["batch", "batches"]


def test_what_may_be_meant() -> None:
    assert meant("retention.mss", ["segment.bytes", "retention.ms"]) == "; did you mean retention.ms?"
    assert meant("x", ["retention.ms"]) == ""
