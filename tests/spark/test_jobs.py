"""Options of audit, load and replay that make no sense, and what needs no Spark. The jobs themselves run in compat_tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ottla.spark.audit import ranges_text
from ottla.spark.cli import app
from ottla.spark.compaction import is_over
from ottla.spark.numbers import first_ranges, unset_bits
from ottla.spark.query import JobError
from ottla.spark.replay import Replay
from ottla.spark.sink_log import archive_files

LOAD = ["load", "in.csv", "--topic", "t", "--checkpoint", "c"]
REPLAY = ["replay", "--to-topic", "t"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["audit"], "say what to audit: topics, an archive, or topics and their archive"),
        (
            ["audit", "--topics", "t"],
            "name the expression for the records' numbers, or both topics and an archive to compare",
        ),
        (
            ["audit", "--topics", "t", "--archive", "a", "--expected", "5"],
            "a producer and an expected number of records need the numbers: name the expression for them",
        ),
        (REPLAY, "say what to replay: topics, an archive, or some of the topics in an archive"),
        (
            [*REPLAY, "--topics", "t", "--since", "yesterday"],
            "--since takes a time like 2026-11-20T08:00:00Z, not 'yesterday'",
        ),
        (
            [*REPLAY, "--topics", "t", "--until", "2026-11-20T08:00"],
            "--until 2026-11-20T08:00 has no time zone: write 2026-11-20T08:00Z for UTC",
        ),
        (
            [*REPLAY, "--topics", "t", "--starting-offsets", '{"t": {"0": -2}}'],
            "offsets of a replay are 0 or more: omit a partition for its beginning or its end",
        ),
        ([*LOAD, "--format", "csv", "--option", "header"], "--option takes NAME=VALUE, not 'header'"),
        (
            ["archive", "--topics", "t", "--output", "lake", "--compact", "--every", "5"],
            "only a run that ends can compact: leave --every or --compact out",
        ),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], line: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (2, f"ottla spark: {line}\n")


def test_an_unknown_format() -> None:
    result = CliRunner().invoke(app, [*LOAD, "--format", "orc"])
    assert result.exit_code == 2
    assert "'orc'" in result.stderr


def test_the_name_of_a_replay() -> None:
    def group_id(**options: Any) -> str:
        return Replay(**{"bootstrap_servers": "here:1", "to_topic": "t", "topics": ("a",), **options}).group_id

    assert group_id() == group_id(rate=5.0) == group_id(bootstrap_servers="here:2")
    assert group_id().startswith("ottla-replay-")
    moment = datetime(2026, 11, 20, 8, tzinfo=UTC)
    others = [group_id(to_topic="u"), group_id(since=moment), group_id(until=moment), group_id(where="true")]
    assert len({group_id(), *others}) == 5
    assert group_id(name="monday") == "ottla-replay-monday"


@pytest.mark.parametrize(
    ("bits", "size", "ranges"),
    [
        (b"", 5, [(0, 4)]),
        (b"\x00", 8, [(0, 7)]),
        (b"\xff", 8, []),
        (b"\xff", 10, [(8, 9)]),
        (b"\b", 8, [(0, 2), (4, 7)]),
        (b"\xf0\x7f", 16, [(0, 3), (15, 15)]),
        (b"\xf0\x7f", 15, [(0, 3)]),
    ],
)
def test_bits_that_are_not_set(bits: bytes, size: int, ranges: list[tuple[int, int]]) -> None:
    assert list(unset_bits(bits, size)) == ranges


def test_ranges_are_joined_and_the_first_ones_shown() -> None:
    assert first_ranges([(0, 4), (5, 7), (9, 9)]) == ((0, 7), (9, 9))
    assert len(first_ranges((number, number) for number in range(0, 1000, 2))) == 20
    assert ranges_text([(3, 3), (7, 9)]) == "3, 7-9"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/lake/topic=a/date=2026-11-19", True),
        ("/lake/topic=a/date=2026-11-20", False),
        ("/lake/topic=a/date=2026-11-20/hour=7", True),
        ("/lake/topic=a/date=2026-11-20/hour=8", False),
        ("/lake/topic=a/date=__HIVE_DEFAULT_PARTITION__", False),
        ("/lake/else", False),
    ],
)
def test_days_and_hours_that_are_over(folder: str, expected: bool) -> None:
    assert is_over(folder, datetime(2026, 11, 20, 8, 59, 59, tzinfo=UTC)) is expected


def write_list(lake: Path, name: str, *files: str, version: str = "v1") -> None:
    (lake / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": f"file://{file}", "size": 1}) for file in files]
    (lake / "_spark_metadata" / name).write_text("\n".join([version, *lines]))


def test_files_that_count(tmp_path: Path) -> None:
    write_list(tmp_path, "8", "/forgotten")
    write_list(tmp_path, "9.compact", "/a%20b", "/c")
    write_list(tmp_path, "10", "/d")
    write_list(tmp_path, "11")
    write_list(tmp_path, ".12.tmp", "/unfinished")
    assert archive_files(str(tmp_path)) == ["/a b", "/c", "/d"]


def test_lists_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="is not an archive"):
        archive_files(str(tmp_path))
    write_list(tmp_path, "0", version="v7")
    with pytest.raises(JobError, match="is written in v7, and only v1 is known"):
        archive_files(str(tmp_path))
