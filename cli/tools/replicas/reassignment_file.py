"""The JSON file format of kafka-reassign-partitions, read and written.

``{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}]}``;
the first replica is the one that is preferred to lead. In ``log_dirs``, which may be left out, stands the log directory for each
replica, or ``any``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..cluster_view import Key
from ..running import ToolError
from .replica_plan import Assignment, Replicas

_VERSION = 1
_ANY_FOLDER = "any"
Folders = dict[tuple[str, int, int], str]
"""Log directory by topic, partition and broker."""


class Wanted(NamedTuple):
    """What a file asks for: replicas, and in which folders those are to be for which it names one."""

    replicas: dict[Key, Replicas]
    folders: Folders


def write(assignment: Assignment) -> str:
    """The text of a file."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas), "log_dirs": [_ANY_FOLDER] * len(replicas)}
        for (topic, number), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions})


def read(path: Path) -> Wanted:
    """What a file asks for. Raises ToolError, OSError."""
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise ToolError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, Mapping) or document.get("version", _VERSION) != _VERSION:
        raise ToolError(f"{path} is not a reassignment of version {_VERSION}")
    wanted = Wanted({}, {})
    for entry in document.get("partitions") or ():
        _take(path, entry, wanted)
    if not wanted.replicas:
        raise ToolError(f"{path} names no partitions")
    return wanted


def _take(path: Path, entry: Any, wanted: Wanted) -> None:
    try:
        key, replicas = (str(entry["topic"]), int(entry["partition"])), tuple(map(int, entry["replicas"]))
        folders = list(map(str, entry.get("log_dirs", [_ANY_FOLDER] * len(replicas))))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ToolError(f"{path}: topic, partition and replicas are required, not {json.dumps(entry)}") from None
    where = f"{path}: {key[0]}-{key[1]}"
    if key in wanted.replicas:
        raise ToolError(f"{where} is named twice")
    if not replicas or len(set(replicas)) < len(replicas):
        raise ToolError(f"{where} needs replicas, each on another broker, not {list(replicas)}")
    if len(folders) != len(replicas):
        raise ToolError(f"{where} has {len(replicas)} replicas and {len(folders)} log_dirs")
    wanted.replicas[key] = replicas
    wanted.folders.update(
        {(*key, replica): folder for replica, folder in zip(replicas, folders, strict=True) if folder != _ANY_FOLDER}
    )
