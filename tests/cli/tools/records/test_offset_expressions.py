"""The forms of ``--offset``, and where they are in partitions."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import pytest
from kafka import TopicPartition

from ottla.cli.tools.records.offset_expressions import (
    END,
    START,
    OffsetExpression,
    OffsetExpressionRange,
    OffsetOrigin,
    parse_place,
    parse_span,
    resolve,
)
from ottla.cli.tools.records.times import parse_duration_ms
from ottla.cli.tools.running import UsageError

JAN_31 = 1_769_817_600_000
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("texts", "span"),
    [
        ((), OffsetExpressionRange(START)),
        (("start",), OffsetExpressionRange(START)),
        (("beginning",), OffsetExpressionRange(START)),
        (("oldest",), OffsetExpressionRange(START)),
        (("end",), OffsetExpressionRange(END)),
        (("newest",), OffsetExpressionRange(END)),
        (("47",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.OFFSET, 47))),
        (("47:",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.OFFSET, 47))),
        (("+3",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.START, 3))),
        (("-3",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.END, -3))),
        ((":47",), OffsetExpressionRange(START, OffsetExpression(OffsetOrigin.OFFSET, 47))),
        ((":end",), OffsetExpressionRange(START, END)),
        (
            ("10:20",),
            OffsetExpressionRange(OffsetExpression(OffsetOrigin.OFFSET, 10), OffsetExpression(OffsetOrigin.OFFSET, 20)),
        ),
        (("-10:end",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.END, -10), END)),
        (("@1769817600000",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.TIME, JAN_31))),
        (("@1769817600",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.TIME, JAN_31))),
        (("@2026-01-31",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.TIME, JAN_31))),
        (("@2026-01-31T12:00:00:",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.TIME, JAN_31 + 43_200_000))),
        (("@2026-01-31T12:00:00.5Z",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.TIME, JAN_31 + 43_200_500))),
        (("@2026-01-31T01:00+01:00:end",), OffsetExpressionRange(OffsetExpression(OffsetOrigin.TIME, JAN_31), END)),
        (
            ("@2026-01-31:1h30m",),
            OffsetExpressionRange(
                OffsetExpression(OffsetOrigin.TIME, JAN_31), OffsetExpression(OffsetOrigin.TIME, JAN_31 + 5_400_000)
            ),
        ),
        (("@:2026-01-31",), OffsetExpressionRange(START, OffsetExpression(OffsetOrigin.TIME, JAN_31))),
        (
            ("s@5", "e@1700000000"),
            OffsetExpressionRange(
                OffsetExpression(OffsetOrigin.TIME, 5), OffsetExpression(OffsetOrigin.TIME, 1_700_000_000)
            ),
        ),
        (("e@7",), OffsetExpressionRange(START, OffsetExpression(OffsetOrigin.TIME, 7))),
    ],
)
def test_forms(texts: tuple[str, ...], span: OffsetExpressionRange) -> None:
    assert parse_span(texts) == span


def test_a_duration_counts_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    assert parse_span(["@-10s:-1s"]) == OffsetExpressionRange(
        OffsetExpression(OffsetOrigin.TIME, 990_000), OffsetExpression(OffsetOrigin.TIME, 999_000)
    )


@pytest.mark.parametrize(
    "texts",
    [
        ("soon",),
        (":",),
        ("",),
        ("stored",),
        ("@",),
        ("@soon",),
        ("@end",),
        ("@1h:soon",),
        ("@1:",),
        ("1:2:3",),
        ("1", "2"),
        ("e@1", ":end"),
    ],
)
def test_what_is_no_offset(texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse_span(texts)


def test_one_place_has_no_end() -> None:
    assert parse_place("-1") == OffsetExpression(OffsetOrigin.END, -1)
    with pytest.raises(UsageError):
        parse_place("1:2")


class Log:
    """Two partitions, of which the second is empty; each record of the first is as old as its offset says, in seconds."""

    def starts(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {where: {FIRST: 5, SECOND: 2}[where] for where in wanted}

    def ends(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {where: {FIRST: 15, SECOND: 2}[where] for where in wanted}

    def at_time(self, wanted: Collection[TopicPartition], time_ms: int) -> Mapping[TopicPartition, int | None]:
        offset = max(5, -(-time_ms // 1000))
        return {where: offset if where == FIRST and offset < 15 else None for where in wanted}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("start", 5),
        ("end", 15),
        ("+2", 7),
        ("-2", 13),
        ("-99", 5),
        ("+99", 15),
        ("9", 9),
        ("0", 5),
        ("99", 15),
        ("s@6500", 7),
        ("s@99000", 15),
    ],
)
def test_a_place_is_in_the_partition(text: str, first: int) -> None:
    assert resolve(parse_place(text), [FIRST, SECOND], Log()) == {FIRST: first, SECOND: 2}


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("3ms", 3),
        ("10s", 10_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("2d", 172_800_000),
        ("PT1H30M", 5_400_000),
        ("P1DT0.5S", 86_400_500),
        ("P7D", 604_800_000),
        ("-PT10S", -10_000),
    ],
)
def test_durations(text: str, length: int) -> None:
    assert parse_duration_ms(text) == length


@pytest.mark.parametrize("text", ["", "1", "h", "P", "PT", "P1DT", "1h x"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration_ms(text)
