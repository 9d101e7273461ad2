"""``ottla dump-log``: prints the files of logs as kafka-dump-log does.

Exit codes: 0, and 1 when a file could not be read to its end.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from ..controller.zookeeper.leaving.state_dump import state_dumps
from ..log.dump.batches import NO_LIMIT, BatchOptions
from ..log.dump.decoders import (
    DEFAULT_DECODER,
    RecordDecoder,
    decode_metadata_log_record,
    decode_offsets_record,
    decode_share_state_record,
    decode_transaction_record,
    plain_decoder,
)
from ..log.dump.files import DumpOptions, dump_files
from ..log.dump.report import DumpError
from ..log.read_only_disk import ReadOnlyDisk
from .nearest_path import meant_path


def run(
    files: Iterable[str],
    *,
    print_data_log: bool,
    deep_iteration: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    share_group_state_decoder: bool,
    cluster_metadata_decoder: bool,
    key_decoder: str | None,
    value_decoder: str | None,
    skip_record_metadata: bool,
    verify_index_only: bool,
    index_sanity_check: bool,
    max_message_size: int,
    max_bytes: int | None,
) -> int:
    """Print the files to standard output; the exit code."""
    decoder: RecordDecoder | None = None
    try:
        if offsets_decoder:
            decoder = decode_offsets_record
        elif transaction_log_decoder:
            decoder = decode_transaction_record
        elif share_group_state_decoder:
            decoder = decode_share_state_record
        elif cluster_metadata_decoder:
            decoder = decode_metadata_log_record
        elif print_data_log or key_decoder or value_decoder:
            decoder = plain_decoder(key_decoder or DEFAULT_DECODER, value_decoder or DEFAULT_DECODER)
    except DumpError as error:
        print(f"ottla: {error}", file=sys.stderr)
        return 1
    options = DumpOptions(
        batches=BatchOptions(
            is_deep=deep_iteration or decoder is not None,
            decoder=decoder,
            skips_record_metadata=skip_record_metadata,
            max_bytes=NO_LIMIT if max_bytes is None else max_bytes,
        ),
        verify_index_only=verify_index_only,
        index_sanity_check=index_sanity_check,
        max_message_size=max_message_size,
        by_name=state_dumps(shows_data=decoder is not None),
    )
    files = list(files)
    try:
        is_whole = dump_files(ReadOnlyDisk(), files, options, _utf8(sys.stdout), sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    for missing in (path for path in map(Path, files) if not path.exists()):
        if hint := meant_path(missing):
            print(f"ottla: {missing} does not exist{hint}", file=sys.stderr)
    return 0 if is_whole else 1


def _utf8(stream: TextIO) -> TextIO:
    """The stream with the encoding that keys and values are taken to have, whatever the terminal's is."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", line_buffering=False)
    return stream
