"""Files that are read whole, when a program starts or a client is made."""

from __future__ import annotations

from pathlib import Path


def read_file(path: str) -> bytes:
    """The content of a file. Raises OSError."""
    return Path(path).read_bytes()
