"""Records as the rows of a page."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from ..base.seams import Workers
from ..view.found_records import FoundRecord
from .decoding import Decoding
from .questions import Question
from .texts import Shown

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class ShownRecord(NamedTuple):
    """A record as a row of a table."""

    record: FoundRecord
    key: Shown
    value: Shown
    codec: str
    gap: int
    """The number of offsets without a record between this one and the one above it."""


async def shown_records(
    found: Sequence[FoundRecord],
    topic: str,
    question: Question,
    decoding: Decoding,
    workers: Workers,
    *,
    with_gaps: bool = True,
) -> list[ShownRecord]:
    """Decoded by a worker; gaps are told of where every record of one partition is shown."""
    await decoding.prepare((record.key for record in found), question.keys)
    await decoding.prepare((record.value for record in found), question.values)
    is_one = with_gaps and not question.has_filter and len({record.partition for record in found}) == 1
    return await workers.run(functools.partial(_rows, found, topic, question, decoding, is_one))


def _rows(
    found: Sequence[FoundRecord], topic: str, question: Question, decoding: Decoding, with_gaps: bool
) -> list[ShownRecord]:
    rows = []
    above: FoundRecord | None = None
    for record in found:
        gap = 0 if above is None or not with_gaps else abs(record.offset - above.offset) - 1
        key = decoding.in_row(record.key, record.key_size, question.keys, topic)
        value = decoding.in_row(record.value, record.value_size, question.values, topic)
        rows.append(ShownRecord(record, key, value, codec_name(record), gap))
        above = record
    return rows


def shown_as(question: Question) -> str:
    """What an address of one record has at its end, so that it is decoded as in the row."""
    chosen = {name: show for name, show in (("show", question.show), ("keys", question.keys)) if show != "auto"}
    return f"?{urlencode(chosen)}" if chosen else ""


def codec_name(record: FoundRecord) -> str:
    """What the batch of the record is compressed with."""
    return _CODECS[record.codec] if record.codec < len(_CODECS) else str(record.codec)
