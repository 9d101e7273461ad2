"""Rules of the structure that import-linter cannot state."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PRODUCT = (
    "base wire security balance metadata log replication controller group_coordinator transaction_coordinator handlers broker "
    "view console testing spark cli"
).split()
_ZOOKEEPER_MODE = re.compile(r"znode|LeaderAndIsr|UpdateMetadata|StopReplica", re.IGNORECASE)
_MAY_NAME_IT = re.compile(
    r"wire/messages/|controller/zookeeper/|handlers/(leader_and_isr|stop_replica|update_metadata)\.py$"
)


def test_only_zookeeper_mode_names_its_nodes_and_requests() -> None:
    """Everything else knows a cluster by its image, its deltas and its commands."""
    naming = {
        str(path.relative_to(ROOT))
        for folder in _PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        if _ZOOKEEPER_MODE.search(path.read_text())
    }
    assert any(_MAY_NAME_IT.match(path) for path in naming)
    assert [path for path in sorted(naming) if not _MAY_NAME_IT.match(path)] == []


def test_only_tests_of_zookeeper_mode_build_its_requests() -> None:
    """The others publish a delta to say who leads (tests/told.py)."""
    request = re.compile(r"messages\.(leader_and_isr|stop_replica|update_metadata) import")
    naming = {
        str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py") if request.search(path.read_text())
    }
    assert {path for path in naming if not path.startswith("tests/controller/")} == set()
