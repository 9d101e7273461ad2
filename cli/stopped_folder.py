"""The error message of commands that cannot use a log directory, such as that of a running broker."""

from __future__ import annotations

from pathlib import Path

from .nearest_path import meant_path


def why_unusable(data_dir: Path, error: OSError, what: str) -> str:
    """Why the folder cannot be used; ``what`` a folder that is not in use could be: "checked", "changed"."""
    if isinstance(error, BlockingIOError):
        return f"the data folder {data_dir} is in use by a broker; only a stopped one can be {what}"
    place = Path(error.filename or data_dir)
    return f"{place}: {error.strerror or error}{meant_path(place)}"
