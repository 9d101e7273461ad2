"""The mirror's options, and what it remembers of offsets. The job itself runs in compat_tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ottla.compat_tests import toolchains
from ottla.spark.cli import app
from ottla.spark.mirror.job import Mirror
from ottla.spark.mirror.offsets import TEXT_LIMIT, MirrorOffsetMap, OffsetRun
from ottla.spark.query import JobError


def mirror(**options: Any) -> Mirror:
    return Mirror(**{"source": "a:9092", "target": "b:9092", "checkpoint": "/state", "topics": ("orders",), **options})


def test_reader_options() -> None:
    assert mirror(topics=(), pattern="o.*", max_offsets_per_trigger=7, fail_on_data_loss=False).reader_options() == {
        "kafka.bootstrap.servers": "a:9092",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "20000",
        "kafka.fetch.max.wait.ms": "50",
        "subscribePattern": "o.*",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "7",
        "failOnDataLoss": "false",
        "includeHeaders": "true",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": ()}, "either by name or by pattern"),
        ({"pattern": "x"}, "either by name or by pattern"),
        ({"topics": (), "pattern": "a("}, r"the pattern of topics 'a\(' is not a regular expression"),
        ({"groups": "a("}, r"the pattern of groups 'a\(' is not a regular expression"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        mirror(**options)


def test_the_command_says_so_in_a_line() -> None:
    common = ["mirror", "--from", "127.0.0.1:1", "--to", "127.0.0.1:1", "--checkpoint", "/state"]
    result = CliRunner().invoke(app, common)
    assert (result.exit_code, result.stderr) == (2, "ottla spark: say which topics: either by name or by pattern\n")


def test_no_broker() -> None:
    pytest.importorskip("pyspark")
    toolchains.java()
    common = ["mirror", "--from", "127.0.0.1:1", "--to", "127.0.0.1:1", "--checkpoint", "/state", "--topics", "t"]
    result = CliRunner().invoke(app, common)
    assert result.exit_code == 1
    assert result.stderr.startswith("ottla spark: no broker answers at 127.0.0.1:1: ")
    assert result.stderr.count("\n") == 1


def test_offsets_of_gaps_on_both_sides() -> None:
    known = MirrorOffsetMap("id")
    assert (known.next_source, known.translate(0)) == (0, None)
    known.add([5, 6, 7, 20, 21], 100, 104)
    known.add([22], 106, 106)
    assert known.runs == [OffsetRun(5, 3, 100), OffsetRun(20, 2, 103), OffsetRun(22, 1, 106)]
    assert known.next_source == 23
    translated = {source: known.translate(source) for source in (4, 5, 7, 8, 19, 20, 21, 22, 23, 99)}
    # What is not there any more at the source is translated to the end of what comes before.
    assert translated == {4: None, 5: 100, 7: 102, 8: 103, 19: 103, 20: 103, 21: 104, 22: 106, 23: 107, 99: 107}


def test_somebody_else_writes_to_the_target() -> None:
    known = MirrorOffsetMap("id")
    known.add([0, 1, 2, 3], 10, 17)
    assert [known.translate(source) for source in (0, 1, 2, 3, 4)] == [10, 11, 11, 17, 18]


def test_the_text() -> None:
    known = MirrorOffsetMap("5f0c", [OffsetRun(0, 100, 0), OffsetRun(100, 50, 101)])
    assert known.text() == "5f0c 0:100:0 100:50:101"
    for text in (known.text(), known.text() + "\0"):
        read = MirrorOffsetMap.parse(text)
        assert (read.topic_id, read.runs) == ("5f0c", known.runs)
    assert MirrorOffsetMap.parse("5f0c\0").runs == []


def test_the_text_stays_short() -> None:
    known = MirrorOffsetMap("x" * 36)
    at = 2**60
    for _ in range(5000):
        known.add([at], at, at)
        at += 2**45
    assert len(known.text()) <= TEXT_LIMIT
    assert MirrorOffsetMap.parse(known.text()).next_source == known.next_source


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), min_size=1, max_size=600))
def test_never_too_late_and_exact_near_the_end(batches: list[tuple[int, int]]) -> None:
    """Batches of so many records, each after a gap in the source; every batch is followed by a marker in the target."""
    known = MirrorOffsetMap("id")
    truth: dict[int, int] = {}
    source = target = 0
    for count, gap in batches:
        source += gap
        truth.update((source + index, target + index) for index in range(count))
        known.add(range(source, source + count), target, target + count - 1)
        # Each transaction stores the text, and a later task may go on from it.
        known = MirrorOffsetMap.parse(known.text())
        source, target = source + count, target + count + 1
    for offset, place in truth.items():
        translated = known.translate(offset)
        if translated is None:
            continue
        assert translated <= place
        assert place - translated <= (target - place) / 2 + 45
        if offset >= known.runs[-10:][0].source:
            assert translated == place
