"""Grouping of the tests for pytest-xdist's processes (``--dist loadgroup``).

A group is the tests that share something dear: a client's driver, one Spark session, topics that the cleaner has been through.
Each process has a broker of its own, so groups don't meet. Groups are begun in the order of the tests, hence the longest first.
"""

from __future__ import annotations

from pathlib import Path

# They start a JVM of their own for what they test, so that both groups of Spark take about as long.
WITH_SPARKS_OF_THEIR_OWN = frozenset(
    f"test_{name}"
    for name in ("archive", "audit", "cluster", "declarative_pipelines", "following", "formats", "mirror", "replay")
)
RUN_BY_FILE = frozenset({"test_codecs_across", "test_compaction"})
"""Not by client: what all clients read is made once, and the drivers of all are started in one process only."""


def group(path: Path, client: str) -> str:
    """The group of a test in this file, for this client."""
    folder, file = path.parent.name, path.stem
    if folder == "spark":
        return "spark, jobs" if file in WITH_SPARKS_OF_THEIR_OWN else "spark, session"
    if folder == "security":
        return f"security, {client}"  # each process has one broker for them, with all that they ask for
    if folder == "java" or file in RUN_BY_FILE:
        return f"{folder}, {file}"
    return f"{client}, {file}" if file.startswith("test_restart") else client


def order(name: str) -> tuple[int, str]:
    """Sorts groups: Spark's and Java's take minutes."""
    return ({"spark": 0, "java": 1}.get(name.partition(",")[0], 2), name)
