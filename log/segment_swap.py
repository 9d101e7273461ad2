"""Crash-safe replacement of segments by the compacted segment made from them.

While it is made, its files end in ``.cleaned``, and a start throws them away. Then, in this order::

    .cleaned -> .swap     the file of batches last: with its new name the swap is decided
    old files -> .deleted
    .swap -> plain name   the file of batches first: a start that finds no .log.swap has nothing to delete

A crash in between leaves what a start can finish: a ``.log.swap`` without ``.cleaned`` files replaces every segment that
begins within its offsets; other ``.swap`` files are renamed only. These are Apache Kafka's rules, so either of the two
finishes what the other one began. Nothing is synced between the renames: a journaling file system keeps their order.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..base.errors import KafkaError
from .disk import Disk, join
from .files import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_INDEX_SUFFIXES,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_file_name,
)
from .scan import scan_batches
from .segment_file import SegmentFile

logger = logging.getLogger(__name__)


def decide_swap(cleaned: SegmentFile) -> None:
    """Rename to ``.swap``: from here on a start finishes the swap if a crash interrupts it. Raises OSError."""
    _rename(cleaned, (*SEGMENT_INDEX_SUFFIXES, LOG_SUFFIX), SWAP_SUFFIX)


def finish_swap(cleaned: SegmentFile) -> None:
    """Give a compacted segment, which replaces others by now, their names. Raises OSError."""
    _rename(cleaned, SEGMENT_SUFFIXES, "")


def _rename(file: SegmentFile, suffixes: tuple[str, ...], file_suffix: str) -> None:
    sources = [file.path_of(suffix) for suffix in suffixes]
    file.suffix = file_suffix
    for suffix, source in zip(suffixes, sources, strict=True):
        # only a segment with aborted transactions has an index of them
        with contextlib.suppress(FileNotFoundError) if suffix == TRANSACTION_INDEX_SUFFIX else contextlib.nullcontext():
            file.disk.rename(source, file.path_of(suffix))


def remove_cleaned(file: SegmentFile) -> None:
    """Remove the files of a compacted segment that is not wanted after all. Raises OSError."""
    assert file.suffix == CLEANED_SUFFIX
    for suffix in SEGMENT_SUFFIXES:
        file.disk.remove(file.path_of(suffix))


@dataclass(frozen=True)
class SwapPlan:
    """The names of the files that an interrupted swap left, in the order of what is to be done with them."""

    taken_back: Sequence[str]
    """New files of a swap that was not decided; they are to be removed."""
    replaced: Sequence[str]
    """Old files of a decided swap; they are to be removed."""
    renamed: Sequence[str]
    """New files of a decided swap; they are to lose ``.swap``."""


def plan_swaps(disk: Disk, directory: str, names: Collection[str]) -> SwapPlan:
    """What finishes, or takes back, what a crash interrupted; ``names`` are the folder's. Raises OSError."""
    cleaned = {name for name in names if name.endswith(CLEANED_SUFFIX)}
    swaps = {name for name in names if name.endswith(SWAP_SUFFIX)}
    if not cleaned and not swaps:
        return SwapPlan((), (), ())
    first_cleaned = min((_offset(name, CLEANED_SUFFIX) for name in cleaned), default=1 << 63)
    # The file of batches is renamed last, so of a swap with .cleaned files left the old segments are all there. Segments are
    # compacted in the order of their offsets: swaps below it are decided.
    undecided = {name for name in swaps if _offset(name, SWAP_SUFFIX) >= first_cleaned}
    swaps -= undecided
    decided = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    ranges = [(_offset(name, SWAP_SUFFIX), _end_of(disk, join(directory, name))) for name in decided]
    replaced = []
    for name in sorted(set(names) - swaps - undecided - cleaned):
        found = parse_file_name(name)
        if found is None or found[1] not in SEGMENT_SUFFIXES:
            continue
        # A new segment without batches has no end; it replaces that of its own name, and the others are compacted again.
        if any(start == found[0] or start < found[0] < end for start, end in ranges):
            replaced.append(name)
    renamed = (*decided, *sorted(swaps.difference(decided)))
    return SwapPlan((*sorted(undecided), *sorted(cleaned)), replaced, renamed)


def finish_swaps(disk: Disk, directory: str, names: set[str]) -> set[str]:
    """Finish, or take back, what a crash interrupted; ``names`` are the folder's. Returns the names there are then.

    Raises OSError.
    """
    plan = plan_swaps(disk, directory, names)
    for name in (*plan.taken_back, *plan.replaced):
        disk.remove(join(directory, name))
    for name in plan.renamed:
        logger.info("%s: finishing a compaction", join(directory, name))
        disk.rename(join(directory, name), join(directory, name.removesuffix(SWAP_SUFFIX)))
    return set(disk.names(directory)) if plan != SwapPlan((), (), ()) else names


def _offset(name: str, suffix: str) -> int:
    found = parse_file_name(name.removesuffix(suffix))
    return -1 if found is None else found[0]


def _end_of(disk: Disk, path: str) -> int:
    end = 0
    file = disk.open(path)
    try:
        for _, batch in scan_batches(file, 0, file.size()):
            end = batch.next_offset
    except KafkaError as error:
        logger.warning("%s is damaged after offset %d: %s", path, end, error)
    finally:
        file.close()
    return end
