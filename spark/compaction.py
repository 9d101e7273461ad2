"""Compaction of an archive: the small files of a day (or an hour) that is over become a few large ones.

The records stay the same, sorted by partition and offset within a file. For each folder: the new files are written out of
sight, moved into the folder, put into Spark's list in place of the old ones in one step, and then the old ones are
deleted. So a reader that is Spark sees each record once at every moment. One that takes what lies in the folder sees the
records of that folder twice between the move and the end of the deletion, never less than once. Killed there, the next
compaction begins by deleting every file that Spark does not list, which is also what a killed archive job leaves behind.

A folder counts as over when its day or hour is, by this machine's clock, in UTC; records that come later go into small
files of their own, and these into the next compaction.
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
from .sink_log import Listed, SinkLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGING = "_compaction"
_FOLDER = re.compile(r"/topic=[^/]+/date=(\d{4}-\d\d-\d\d)(?:/hour=(\d+))?$")


@dataclass(frozen=True)
class Compacted:
    """A folder that was done, relative to the archive, and the number of its small files before and after."""

    folder: str
    before: int
    after: int


@dataclass(frozen=True)
class Place:
    """Where an archive lies: ``host`` is scheme and authority, to which the lists' paths are appended."""

    host: str
    path: str

    @classmethod
    def of(cls, files: Files, output: str) -> Place:
        """The place of an output, however it was given."""
        match = re.match(r"([a-z0-9+.-]+:(?://[^/]*)?)(/.*)$", files.absolute(output), re.IGNORECASE)
        assert match is not None, output
        return cls(match[1], match[2])

    def uri(self, path: str) -> str:
        """A path of the lists as one to open."""
        return f"{self.host}{path}"

    def relative(self, path: str) -> str:
        """A path as it lies in the archive; unchanged if it does not."""
        return path.removeprefix(f"{self.path}/")


def compact(
    spark: SparkSession,
    output: str,
    target_bytes: int,
    report: Callable[[Compacted], None] = lambda compacted: None,
) -> None:
    """Make files of about ``target_bytes`` out of those under half of it, where no other job writes. Raises JobError."""
    files = Files(spark)
    place = Place.of(files, output)
    log = SinkLog(files, place.uri(place.path))
    delete_what_is_not_listed(files, log, place)
    for folder, small in sorted(_small_files(log, target_bytes, datetime.now(UTC)).items()):
        count = math.ceil(sum(file.size for file in small) / target_bytes)
        if count < len(small):
            after = _rewrite(spark, files, log, place, small, count)
            report(Compacted(place.relative(folder), len(small), after))
    files.delete(f"{place.uri(place.path)}/{STAGING}")


def delete_what_is_not_listed(files: Files, log: SinkLog, place: Place) -> None:
    """What a killed job has left in the folders. Raises JobError, and deletes nothing, if the lists are another archive's."""
    root = place.uri(place.path)
    listed = {file.path for file in log.listed()}
    if not log.exists() or any(place.relative(path) == path for path in listed):
        raise JobError(
            f"{root} is no archive, or it was moved: its _spark_metadata does not list the files that are there"
        )
    files.delete(f"{root}/{STAGING}")
    for name in files.names(root):
        if name.startswith("topic="):
            for file in list(files.below(f"{root}/{name}")):
                if file.path not in listed:
                    files.delete(place.uri(file.path))


def _small_files(log: SinkLog, target_bytes: int, now: datetime) -> dict[str, list[Listed]]:
    """The files to rewrite, by folder."""
    found = defaultdict(list)
    for file in log.listed():
        folder = file.path.rpartition("/")[0]
        if file.is_replaceable and file.size < target_bytes // 2 and is_over(folder, now):
            found[folder].append(file)
    return found


def is_over(folder: str, now: datetime) -> bool:
    """Is the day or hour of an archive's folder over? Other folders never are."""
    match = _FOLDER.search(folder)
    if match is None:
        return False
    begin = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    if match[2] is None:
        return begin + timedelta(days=1) <= now
    return begin + timedelta(hours=int(match[2]) + 1) <= now


def _rewrite(spark: SparkSession, files: Files, log: SinkLog, place: Place, small: list[Listed], count: int) -> int:
    """Put about ``count`` files in place of small ones of one folder; how many they became."""
    staging = f"{place.uri(place.path)}/{STAGING}"
    folder = place.uri(small[0].path.rpartition("/")[0])
    rows = spark.read.parquet(*(place.uri(file.path) for file in small))
    order = ["partition", "offset"]
    rows.repartitionByRange(count, *order).sortWithinPartitions(*order).write.mode("overwrite").parquet(staging)
    written = [name for name in files.names(staging) if name.endswith(".parquet")]
    log.replace(files, small, [files.move(f"{staging}/{name}", folder) for name in written])
    for file in small:
        files.delete(place.uri(file.path))
    return len(written)
