"""The tree behind the embedded store: ZooKeeper's rules, and a refused transaction that changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.controller.zookeeper.store.cluster_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Set,
    Stat,
    StoreError,
    WatchEvent,
)
from ottla.controller.zookeeper.store.znode_tree import ZnodeTransaction, ZnodeTree


def apply(tree: ZnodeTree, *operations: Operation, session: int = 1, time_ms: int = 5) -> Sequence[object]:
    return tree.apply(ZnodeTransaction(tree.zxid + 1, session, time_ms, operations))[0]


def picture(tree: ZnodeTree) -> dict[str, object]:
    return {path: (node.data, node.stat(), node.sequence) for path, node in tree.nodes.items()}


def test_versions_and_zxids_follow_the_writes() -> None:
    tree = ZnodeTree()
    apply(tree, Create("/a", b"1"))
    apply(tree, Set("/a", b"2", version=0), time_ms=9)
    node = tree.get("/a")
    assert node is not None
    assert node.data == b"2"
    assert node.stat == Stat(1, 2, 5, 9, 1, 0, 0)


def test_a_set_in_the_multi_that_created_a_node_tells_its_czxid() -> None:
    tree = ZnodeTree()
    apply(tree, Create("/a"))
    path, stat = apply(tree, Create("/a/b", b"x", ephemeral=True), Set("/a/b", b"x"))
    assert path == "/a/b"
    assert isinstance(stat, Stat)
    assert (stat.czxid, stat.ephemeral_owner) == (2, 1)


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Create("/a"), NodeExistsError),
        (Create("/no/child"), NoNodeError),
        (Create("/e/child"), StoreError),
        (Set("/no", b""), NoNodeError),
        (Set("/a", b"", version=7), BadVersionError),
        (Delete("/no"), NoNodeError),
        (Delete("/a"), NotEmptyError),
        (Delete("/a/b", version=3), BadVersionError),
        (Check("/no", 0), NoNodeError),
        (Check("/a", 9), BadVersionError),
    ],
)
def test_a_refused_operation_undoes_the_whole_multi(operation: Operation, error: type[StoreError]) -> None:
    tree = ZnodeTree()
    apply(tree, Create("/a", b"a"), Create("/a/b"), Create("/e", ephemeral=True))
    before = picture(tree)
    with pytest.raises(error):
        apply(tree, Create("/new"), Set("/a", b"z"), Create("/a/s-", sequence=True), Delete("/e"), operation)
    with pytest.raises(error):
        apply(tree, operation)
    assert picture(tree) == before
    assert tree.zxid == 1


def test_sequence_numbers_count_every_child_ever_made() -> None:
    tree = ZnodeTree()
    apply(tree, Create("/q"))
    assert apply(tree, Create("/q/n_", sequence=True), Create("/q/n_", sequence=True)) == [
        "/q/n_0000000000",
        "/q/n_0000000001",
    ]
    apply(tree, Delete("/q/n_0000000001"))
    assert apply(tree, Create("/q/n_", sequence=True)) == ["/q/n_0000000002"]


def test_events_name_the_node_and_its_parent() -> None:
    tree = ZnodeTree()
    _, events = tree.apply(ZnodeTransaction(1, 1, 0, [Create("/a"), Set("/a", b"1"), Delete("/a")]))
    assert events == [
        WatchEvent(EventType.CREATED, "/a"),
        WatchEvent(EventType.CHILDREN, "/"),
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.DELETED, "/a"),
        WatchEvent(EventType.CHILDREN, "/"),
    ]


def test_ephemerals_are_those_of_their_session() -> None:
    tree = ZnodeTree()
    apply(tree, Create("/one", ephemeral=True), session=1)
    apply(tree, Create("/two", ephemeral=True), session=2)
    assert tree.ephemerals(2) == ["/two"]
    assert sorted(tree.ephemerals()) == ["/one", "/two"]


_paths = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/deep"])
_operations = st.one_of(
    st.builds(Create, _paths, st.binary(max_size=3), st.booleans(), st.booleans()),
    st.builds(Set, _paths, st.binary(max_size=3), st.integers(-1, 2)),
    st.builds(Delete, _paths, st.integers(-1, 2)),
    st.builds(Check, _paths, st.integers(-1, 2)),
)


@given(st.lists(st.lists(_operations, min_size=1, max_size=5), max_size=12))
@settings(max_examples=200, deadline=None)
def test_a_transaction_happens_whole_or_not_at_all(transactions: list[list[Operation]]) -> None:
    tree = ZnodeTree()
    replayed = ZnodeTree()
    for operations in transactions:
        before = picture(tree)
        try:
            apply(tree, *operations)
        except StoreError:
            assert picture(tree) == before
            continue
        replayed.apply(ZnodeTransaction(tree.zxid, 1, 5, [o for o in operations if not isinstance(o, Check)]))
    assert picture(tree) == picture(replayed)
    for path, node in tree.nodes.items():
        prefix = path.rstrip("/") + "/"
        children = {other[len(prefix) :] for other in tree.nodes if other.startswith(prefix) and other != "/"}
        assert node.children == {name for name in children if "/" not in name}
