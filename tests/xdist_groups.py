"""Which slow tests one process runs, where pytest-xdist spreads them over several (``--dist loadgroup``), and in which order.

A group is the tests of a file, because they share fixtures, often a broker or a JVM; or of a folder whose files share them. In a
file of ``APART`` each test is a group. A process that has finished its group is given the next one, the longest first, so that
all end at about the same time.
"""

from __future__ import annotations

from pathlib import PurePath

LONG = (
    "cli/processes/test_transcripts",
    "kafka_files",
    "mixed",
    "quorum_mixed",
    "console",
    "test_readme",
    "testing/test_failover",
    "test_packaging",
    "testing/test_page",
    "spark/test_quiet_start",
    "jepsen/test_jepsen",
    "test_readme_cluster",
    "bench/test_failover",
    "controller",
    "cli/tools/test_compat",
    "broker/processes/test_zookeeper_away",
    "broker/processes/test_serve_zookeeper",
    "compat/test_clusters",
    "cli/test_dev_cluster",
    "cli/tools/test_cluster",
    "cli/tools/replicas/test_moves",
    "test_docs_site",
    "cli/tools/records/test_consume",
)
"""Files and folders that take longer than others, the longest first."""
APART = frozenset({"cli/processes/test_transcripts", "testing/test_failover"})
"""Files whose tests are long and share nothing."""
TOGETHER = frozenset({"console", "controller", "kafka_files", "mixed", "quorum_mixed"})
"""Folders whose files share a broker and a browser, Apache Kafka's log directories, a ZooKeeper or a cluster."""


def group(file: PurePath) -> str | None:
    """The group of the tests in this file, which is relative to ``tests``; None when each has its own."""
    name = _name(file)
    return None if name in APART else name


def order(file: PurePath) -> int:
    """The sort key of a file."""
    name = _name(file)
    return LONG.index(name) if name in LONG else len(LONG)


def _name(file: PurePath) -> str:
    folder = file.parent.as_posix()
    return folder if folder in TOGETHER else file.with_suffix("").as_posix()
