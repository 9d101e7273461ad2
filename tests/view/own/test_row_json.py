"""Rows go to another broker as JSON and come back as they were; what is no such row is refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from ottla.view.inside_rows import CleaningRow, ClientRow, LogRow, RetentionRow, WriterRow
from ottla.view.own.row_json import row_as_json, row_from_json
from ottla.view.own.told_rows import KINDS
from ottla.view.rows import RequestRow

CLIENT = ClientRow("10.0.0.7:4711", "10.0.0.7", 'client "id" \udcff ü', "java", "1", "User:ANONYMOUS")
REQUEST = RequestRow(1, "Fetch", 12, "c", "p", 0.5, 2.0, 10, 20, ("A", "B"), (), "why", 7)
RETENTION = RetentionRow(1, -1, 300, 0, None, None, "why")
ROWS = (
    REQUEST,
    WriterRow(0, None, None, "t", None, 1, 2, None, CLIENT),
    WriterRow(0, 77, 3, None, 1, 1, None, 5, None),
    LogRow("t", 0, "/data", 1, 2, 3, 4, 5, 6, RETENTION, CleaningRow(None, 0.5, 0, 1, 2, 3, "next")),
    LogRow("t", 0, "/data", 1, 2, 3, 4, 5, 6, RETENTION, None),
)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_comes_back(row: Any) -> None:
    read = row_from_json(type(row), row_as_json(row), 4)
    if hasattr(row, "broker"):
        assert read.broker == 4
        read = dataclasses.replace(read, broker=None)
    assert read == row


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(row_as_json(REQUEST)), **fields}).encode()


def test_a_field_of_a_later_version_is_passed_over() -> None:
    assert row_from_json(RequestRow, changed(later=[1]), 4) == dataclasses.replace(REQUEST, broker=4)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"[]",
        b"7",
        b"\xff",
        b"{}",
        b'{"broker": 1}',
        changed(at_ms="1"),
        changed(at_ms=True),
        changed(at_ms=None),
        changed(total_ms="x"),
        changed(errors="ab"),
        changed(errors=[1]),
        changed(reason=1),
    ],
)
def test_what_is_no_row_is_refused(told: bytes) -> None:
    with pytest.raises(ValueError, match=r"is no |has a field|Expecting|codec can't|JSON"):
        row_from_json(RequestRow, told, 4)


def test_each_kind_of_rows_can_be_read() -> None:
    for kind in KINDS.values():
        with pytest.raises(ValueError, match="has a field"):
            row_from_json(kind.row_class, b"{}", 4)
