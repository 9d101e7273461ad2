"""``python -m ottla.tools.suite test`` and ``… all``: the programs behind `make test` and `make test-all`.

Tests write to memory where it is large enough. A disk's file system may stand still for half a minute while it forgets the
thousands of files that a test has deleted, and then another test's client loses patience.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from ottla.tools.suite import make_test, make_test_all

MEMORY = Path("/dev/shm")
LEAST_FREE_BYTES = 8 << 30
_INTERRUPTED = 130


def main() -> int:
    """The exit status."""
    is_roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= LEAST_FREE_BYTES
    with tempfile.TemporaryDirectory(dir=MEMORY if is_roomy else None, ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        kind, *words = sys.argv[1:]
        status = _INTERRUPTED
        try:
            status = {"test": make_test.main, "all": make_test_all.main}[kind](words)
        except* KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
