"""The error message of commands that cannot use a log directory, such as that of a running broker."""

from __future__ import annotations

from pathlib import Path


def why_unusable(data_dir: Path, error: OSError, what: str) -> str:
    """Why the folder cannot be used; ``what`` a folder that is not in use could be: "checked", "changed"."""
    if isinstance(error, BlockingIOError):
        return f"the log directory {data_dir} is in use by a broker; only a stopped one can be {what}"
    return f"{error.filename or data_dir}: {error.strerror or error}"
