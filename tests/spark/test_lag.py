"""The lag job's rules, and what it takes for a commit. The job itself runs in compat_tests."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from ottla.compat_tests import toolchains
from ottla.spark.cli import app
from ottla.spark.lag.commits import CommitWindow, GroupTopicPartition, note
from ottla.spark.lag.rules import Commit, LagStatus, judge
from ottla.wire.coordinator_records import encode_coordinator_record
from ottla.wire.messages.consumer_offsets import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

STEP_MS = 1000


def commits(*pairs: tuple[int, int]) -> list[Commit]:
    """(offset, lag), a second apart."""
    return [Commit(offset, index * STEP_MS, lag) for index, (offset, lag) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("window", "lag", "status"),
    [
        ([], 5, LagStatus.OK),
        ([(10, 5), (10, 5)], 0, LagStatus.OK),
        ([(10, 5), (10, 5), (10, 9)], 9, LagStatus.STALLED),
        ([(10, 5), (10, 5), (10, 0)], 9, LagStatus.OK),
        ([(10, 5), (12, 5), (13, 9)], 9, LagStatus.WARNING),
        ([(10, 5), (12, 4), (13, 9)], 9, LagStatus.OK),
        ([(10, 5), (12, 5), (11, 6)], 6, LagStatus.REWIND),
        ([(10, 0), (2, 8), (5, 9)], 9, LagStatus.REWIND),
        ([(10, 5), (2, 13), (12, 5)], 5, LagStatus.OK),
        ([(10, 5), (9, 6), (10, 5), (3, 13)], 13, LagStatus.OK),
    ],
)
def test_rules(window: list[tuple[int, int]], lag: int, status: LagStatus) -> None:
    found = commits(*window)
    now_ms = found[-1].timestamp_ms + 1 if found else 0
    assert judge(found, lag, now_ms, was_at_end_lately=False) is status


def test_stopped() -> None:
    window = commits((10, 0), (12, 0), (14, 0))
    last, span = 2 * STEP_MS, 2 * STEP_MS
    assert judge(window, 5, last + span, was_at_end_lately=False) is LagStatus.OK
    assert judge(window, 5, last + span + 1, was_at_end_lately=False) is LagStatus.STOPPED
    assert judge(window, 5, last + span + 1, was_at_end_lately=True) is LagStatus.OK
    assert judge(window, 0, last + span + 1, was_at_end_lately=False) is LagStatus.OK


def test_records_of_the_topic() -> None:
    found: dict[GroupTopicPartition, CommitWindow] = {}

    def take(key: object, value: object = None, version: int = 0) -> None:
        encoded = None if value is None else encode_coordinator_record(value, version)  # type: ignore[arg-type]
        note(found, encode_coordinator_record(key, 0), encoded, re.compile("g.*"), 2)  # type: ignore[arg-type]

    place = GroupTopicPartition("g1", "t", 3)
    key = OffsetCommitKey(group="g1", topic="t", partition=3)
    take(
        LegacyOffsetCommitKey(group="g1", topic="t", partition=3),
        LegacyOffsetCommitValue(offset=1, metadata="", commit_timestamp=100),
    )
    for version in range(5):
        take(key, OffsetCommitValue(offset=version + 2, metadata="m", commit_timestamp=101 + version), version)
    take(GroupMetadataKey(group="g1"))
    take(
        OffsetCommitKey(group="other", topic="t", partition=3),
        OffsetCommitValue(offset=9, metadata="", commit_timestamp=1),
    )
    note(found, None, b"", re.compile("g.*"), 2)
    note(found, b"\x00\x63", b"", re.compile("g.*"), 2)
    assert list(found) == [place]
    assert (list(found[place].commits), found[place].is_cleared) == ([(5, 104), (6, 105)], False)
    take(key)
    take(key, OffsetCommitValue(offset=7, metadata="", commit_timestamp=110))
    assert (list(found[place].commits), found[place].is_cleared) == ([(7, 110)], True)


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (["--groups", "a("], 2, "the pattern of groups 'a(' is not a regular expression: "),
        (["--bootstrap-server", "127.0.0.1:1"], 1, "no broker answers at 127.0.0.1:1: "),
    ],
)
def test_errors_of_the_command(arguments: list[str], status: int, line: str) -> None:
    pytest.importorskip("pyspark")
    toolchains.java()
    result = CliRunner().invoke(app, ["lag", *arguments])
    assert result.exit_code == status
    assert result.stderr.startswith(f"ottla spark: {line}")
    assert result.stderr.count("\n") == 1
