"""Rules of the structure that import-linter cannot state."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PRODUCT = (
    "base wire security balance metadata log replication controller group_coordinator transaction_coordinator share_coordinator "
    "share_partitions "
    "handlers broker view console testing spark cli"
).split()
_ZOOKEEPER_MODE = re.compile(r"znode|LeaderAndIsr|UpdateMetadata|StopReplica", re.IGNORECASE)
_MAY_NAME_IT = re.compile(
    r"wire/messages/|controller/zookeeper/|handlers/(leader_and_isr|stop_replica|update_metadata)\.py$"
)
_AS_IN_A_MESSAGE = {"TopicPartition", "StateBatch"}
"""What Kafka calls so in its own code, too."""
_RIDDLE = re.compile(r"(What|Where|Who|Whom|Whose|Which|How|When|Whether|Why)\b")
_SCREEN = 70
"""Lines of a function."""


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
    """The others publish a delta to say who leads (tests/helpers/told.py)."""
    request = re.compile(r"messages\.(leader_and_isr|stop_replica|update_metadata) import")
    naming = {
        str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py") if request.search(path.read_text())
    }
    assert {path for path in naming if not path.startswith("tests/controller/")} == set()


def test_a_class_name_stands_once() -> None:
    """One search finds the class. The structures of a message are named by Kafka's schemas, and are its own."""
    places: dict[str, list[str]] = {}
    for path, tree in _modules():
        if "messages/" not in path:
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(path)
    structures = {
        node.name
        for path, tree in _modules()
        if "messages/" in path
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
    assert structures & {*places} == _AS_IN_A_MESSAGE


def test_a_module_says_in_its_first_line_what_it_holds() -> None:
    """A stranger reads these lines in a list of files: a noun phrase or a sentence on one line, no riddle."""
    heads = {path: (ast.get_docstring(tree) or "").split("\n\n")[0] for path, tree in _modules()}
    assert {path: head for path, head in heads.items() if not head or "\n" in head or _RIDDLE.match(head)} == {}


def test_a_function_fits_a_screen() -> None:
    sizes = {
        f"{path}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: size for name, size in sizes.items() if size > _SCREEN} == {}


@functools.cache
def _modules() -> Sequence[tuple[str, ast.Module]]:
    """The product's modules by path."""
    paths = sorted(path for folder in _PRODUCT for path in (ROOT / folder).rglob("*.py"))
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in paths]
