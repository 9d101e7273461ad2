"""Compaction of an archive: the small files of a day (or an hour) that is over become a few large ones.

The records stay the same, sorted by partition and offset within a file. For each folder: the new files are written to
another folder, moved into this one, listed by Spark in place of the old ones in one step, and then the old ones are
deleted. So Spark sees each record exactly once at any time. A reader that takes all files in the folder sees the
records of that folder twice between the move and the end of the deletion, and always at least once. If it was killed, the next
compaction begins by deleting every file that Spark does not list; these include files that a killed archive job has left.

A folder counts as over when its day or hour is, by this machine's clock, in UTC; later records go into small
files of their own, which the next compaction includes.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from .files import Files
from .query import JobError
from .sink_log import SinkFileStatus, SinkLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGING = "_compaction"
_FOLDER = re.compile(r"/topic=[^/]+/date=(\d{4}-\d\d-\d\d)(?:/hour=(\d+))?$")


@dataclass(frozen=True)
class Compacted:
    """A compacted folder, relative to the archive, and the number of its small files before and after."""

    folder: str
    before: int
    after: int


@dataclass(frozen=True)
class ArchiveLocation:
    """The place of an archive."""

    host: str
    """Scheme and authority, to which the paths in the lists are appended."""
    path: str

    @classmethod
    def of(cls, files: Files, output: str) -> ArchiveLocation:
        """The place of an output, given as a path or URI."""
        match = re.match(r"([a-z0-9+.-]+:(?://[^/]*)?)(/.*)$", files.absolute(output), re.IGNORECASE)
        assert match is not None, output
        return cls(match[1], match[2])

    def uri(self, path: str) -> str:
        """The URI of a path in the lists."""
        return f"{self.host}{path}"

    def relative(self, path: str) -> str:
        """A path relative to the archive; unchanged if it is outside."""
        return path.removeprefix(f"{self.path}/")


def compact(
    spark: SparkSession,
    output: str,
    target_bytes: int,
    report: Callable[[Compacted], None] = lambda compacted: None,
) -> None:
    """Make files of about ``target_bytes`` from those under half of it; no other job may write there. Raises JobError."""
    files = Files(spark)
    place = ArchiveLocation.of(files, output)
    log = SinkLog(files, place.uri(place.path))
    delete_what_is_not_listed(files, log, place)
    for folder, small in sorted(_small_files(log, target_bytes, datetime.now(UTC)).items()):
        count = math.ceil(sum(file.size for file in small) / target_bytes)
        if count < len(small):
            after = _rewrite(spark, files, log, place, small, count)
            report(Compacted(place.relative(folder), len(small), after))
    files.delete(f"{place.uri(place.path)}/{STAGING}")


def delete_what_is_not_listed(files: Files, log: SinkLog, place: ArchiveLocation) -> None:
    """Delete files that a killed job has left. Raises JobError, and deletes nothing, if the lists belong to another archive."""
    root = place.uri(place.path)
    listed = {file.path for file in log.listed()}
    if not log.exists() or any(place.relative(path) == path for path in listed):
        raise JobError(
            f"{root} is not an archive, or it was moved: its _spark_metadata does not list the existing files"
        )
    files.delete(f"{root}/{STAGING}")
    for name in files.names(root):
        if name.startswith("topic="):
            for file in list(files.below(f"{root}/{name}")):
                if file.path not in listed:
                    files.delete(place.uri(file.path))


def _small_files(log: SinkLog, target_bytes: int, now: datetime) -> dict[str, list[SinkFileStatus]]:
    """The files to rewrite, by folder."""
    found = defaultdict(list)
    for file in log.listed():
        folder = file.path.rpartition("/")[0]
        if file.is_replaceable and file.size < target_bytes // 2 and is_over(folder, now):
            found[folder].append(file)
    return found


def is_over(folder: str, now: datetime) -> bool:
    """Whether the day or hour of an archive's folder is over; false for other folders."""
    match = _FOLDER.search(folder)
    if match is None:
        return False
    begin = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    if match[2] is None:
        return begin + timedelta(days=1) <= now
    return begin + timedelta(hours=int(match[2]) + 1) <= now


def _rewrite(
    spark: SparkSession, files: Files, log: SinkLog, place: ArchiveLocation, small: list[SinkFileStatus], count: int
) -> int:
    """Replace the small files of one folder by about ``count`` files. Returns their number."""
    staging = f"{place.uri(place.path)}/{STAGING}"
    folder = place.uri(small[0].path.rpartition("/")[0])
    rows = spark.read.parquet(*(place.uri(file.path) for file in small))
    order = ["partition", "offset"]
    rows.repartitionByRange(count, *order).sortWithinPartitions(*order).write.mode("overwrite").parquet(staging)
    written = [name for name in files.names(staging) if name.endswith(".parquet")]
    # New files first, then the list, which is replaced at once, then the old files. Whenever a job is killed, the list names
    # whole files with every record once, and ``delete_what_is_not_listed`` removes the rest.
    log.replace(files, small, [files.move(f"{staging}/{name}", folder) for name in written])
    for file in small:
        files.delete(place.uri(file.path))
    return len(written)
