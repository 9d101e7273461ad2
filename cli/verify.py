"""``ottla verify``: prints the faults of a log directory.

Exit codes: 0 there are none, 1 there are some, 2 it cannot be checked.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from ..broker.directories.verify_metadata import verify_metadata
from ..log.read_only_disk import ReadOnlyDisk
from ..log.verify.directory import NotADataFolderError, verify_folder
from .stopped_folder import why_unusable


def run(data_dir: Path, as_json: bool) -> int:
    """Check the folder and print a line, or a JSON object, for each finding; the exit code."""
    found = []
    try:
        for finding in verify_folder(ReadOnlyDisk(), str(data_dir), verify_metadata):
            found.append(finding)
            if not as_json:
                print(finding, flush=True)
    except NotADataFolderError as error:
        print(f"ottla: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"ottla: {why_unusable(data_dir, error, 'checked')}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps([dataclasses.asdict(finding) for finding in found], indent=2))
    return 1 if found else 0
