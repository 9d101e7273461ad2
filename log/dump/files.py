"""The dump of the files on a command line, in their order, each printed according to its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TextIO

from ...base.errors import KafkaError
from ..disk import Disk
from ..files import (
    CHECKPOINT_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from .batches import BatchOptions, dump_segment
from .indexes import dump_offset_index, dump_snapshot, dump_time_index, dump_transaction_index
from .report import DumpError, Report

FileDump = Callable[[Disk, str, Report], None]
"""Prints the file at a path. Raises DumpError, KafkaError, OSError."""


@dataclass(frozen=True)
class DumpOptions:
    """What to print of which kind of file."""

    batches: BatchOptions
    verify_index_only: bool
    index_sanity_check: bool
    max_message_size: int
    """How many bytes are read, at most, for the batch of an index entry."""
    by_name: Mapping[str, FileDump] = field(default_factory=dict)
    """Prints the files that this layer does not know, by their names."""


def dump_files(disk: Disk, paths: Iterable[str], options: DumpOptions, out: TextIO, errors: TextIO) -> bool:
    """Print the files to ``out`` and complaints to ``errors``; whether all of them could be read to their ends."""
    report = Report(out)
    try:
        for path in paths:
            path = re.sub("/+", "/", path)  # as Java's File has it
            report.line(f"Dumping {path}")
            complaint = _dump_file(disk, path, options, report)
            if complaint is not None:
                out.flush()
                print(complaint, file=errors)
    except BrokenPipeError:
        raise
    except OSError as error:
        out.flush()
        print(f"{error.filename or path}: {error.strerror or error}", file=errors)
        return False
    except (DumpError, KafkaError, ValueError) as error:
        out.flush()
        print(error.message if isinstance(error, KafkaError) else error, file=errors)
        return False
    out.flush()
    for line in report.complaints():
        print(line, file=errors)
    return True


def _dump_file(disk: Disk, path: str, options: DumpOptions, report: Report) -> str | None:
    sanity_only, verify_only = options.index_sanity_check, options.verify_index_only
    name = os.path.basename(path)
    suffix = os.path.splitext(name)[1]
    if name in options.by_name:
        options.by_name[name](disk, path, report)
    elif suffix in (LOG_SUFFIX, CHECKPOINT_SUFFIX):
        dump_segment(disk, path, options.batches, report)
    elif suffix == INDEX_SUFFIX:
        limit = options.max_message_size
        dump_offset_index(disk, path, report, sanity_only=sanity_only, verify_only=verify_only, max_message_size=limit)
    elif suffix == TIME_INDEX_SUFFIX:
        dump_time_index(disk, path, report, sanity_only=sanity_only, verify_only=verify_only)
    elif suffix == SNAPSHOT_SUFFIX:
        return dump_snapshot(disk, path, report)
    elif suffix == TRANSACTION_INDEX_SUFFIX:
        dump_transaction_index(disk, path, report)
    else:
        return f"Ignoring unknown file {path}"
    return None
