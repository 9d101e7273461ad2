"""A helper that reads a whole file, used at startup and when a client is created."""

from __future__ import annotations

from pathlib import Path


def read_file(path: str) -> bytes:
    """The content of a file. Raises OSError."""
    return Path(path).read_bytes()
