"""Log directories that kafka-storage has formatted, for every kind of voters and for older releases, started by Ottla."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.api_versions import ApiVersionsRequest

from ..java.warm_tools import WarmTools
from .helpers.either_quorum import OTTLA, PATIENCE_S, EitherNode, EitherQuorum
from .helpers.metadata_walk import MetadataWalk

pytestmark = pytest.mark.slow

BOTH = "broker,controller"
NEWEST = ("--feature", "streams.version=0")
"""Releases from 4.2 on have a feature that Ottla lacks."""
WITHOUT_GROUPS = ("--feature", "group.version=0", "--feature", "share.version=0")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmTools]:
    with contextlib.closing(WarmTools("", tmp_path_factory.mktemp("tools"))) as tools:
        yield tools


def format_by(tools: WarmTools, node: EitherNode, *options: str) -> None:
    outcome = tools.run("storage", "format", "--config", str(node.file), "--cluster-id", CLUSTER_ID, *options)
    assert outcome.code == 0, outcome.printed


def finalized(node: EitherNode) -> dict[str, int]:
    with connect(node.address) as connection:
        versions = connection.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    return {each.name: each.max_version_level for each in versions.finalized_features}


@pytest.mark.parametrize(
    ("voters", "options", "levels"),
    [
        ("static", ("--release-version", "3.3"), {"metadata.version": 7}),
        ("static", ("--release-version", "3.6"), {"metadata.version": 14}),
        ("standalone", ("--standalone", "--release-version", "3.9"), {"metadata.version": 21, "kraft.version": 1}),
        (
            "standalone",
            ("--standalone", "--release-version", "4.0"),
            {"metadata.version": 25, "kraft.version": 1, "transaction.version": 2, "group.version": 1},
        ),
        (
            "standalone",
            ("--standalone", "--feature", "transaction.version=0", *WITHOUT_GROUPS, *NEWEST),
            {"metadata.version": 30, "kraft.version": 1, "eligible.leader.replicas.version": 1},
        ),
        (
            "static",
            NEWEST,
            {
                "metadata.version": 30,
                "transaction.version": 2,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "share.version": 1,
            },
        ),
    ],
    ids=["3.3", "3.6", "3.9", "4.0", "the first version of features", "4.3 with a static voter"],
)
def test_a_release(
    voters: str, options: tuple[str, ...], levels: dict[str, int], tools: WarmTools, tmp_path: Path
) -> None:
    """One node begins with the features that it was formatted for, and keeps to them in its next life."""
    quorum = EitherQuorum(tmp_path / "nodes", {1: BOTH}, OTTLA, voters=voters)
    with contextlib.closing(quorum):
        (node,) = quorum.nodes.values()
        format_by(tools, node, *options)
        quorum.start()
        assert finalized(node) == levels
        walk = MetadataWalk(quorum)
        walk.make_topic("t")
        quorum.stop()
        quorum.start()
        assert finalized(node) == levels
        walk.read_all()


def test_users_of_the_first_hour(tools: WarmTools, tmp_path: Path) -> None:
    quorum = EitherQuorum(tmp_path / "nodes", {1: BOTH}, OTTLA, voters="standalone")
    with contextlib.closing(quorum):
        (node,) = quorum.nodes.values()
        users = "SCRAM-SHA-256=[name=alice,iterations=4096,password=secret]"
        format_by(tools, node, "--standalone", "--add-scram", users, *NEWEST)
        quorum.start()
        admin = AdminClient({"bootstrap.servers": quorum.bootstrap, "log_level": 0})
        assert list(admin.describe_user_scram_credentials(None).result(PATIENCE_S)) == ["alice"]


def test_nodes_of_every_kind(tools: WarmTools, tmp_path: Path) -> None:
    """Two initial voters, a controller that joins by itself, and a broker that is nothing else."""
    roles = {1: "controller", 2: BOTH, 3: "controller", 11: "broker"}
    quorum = EitherQuorum(tmp_path / "nodes", roles, OTTLA)
    with contextlib.closing(quorum):
        nodes = quorum.nodes
        initial = ",".join(f"{each}@{nodes[each].controller_address}:{nodes[each].directory_id}" for each in (1, 2))
        quorum.configure(nodes[3], controller_quorum_auto_join_enable="true")
        for each in (1, 2):
            format_by(tools, nodes[each], "--initial-controllers", initial, *NEWEST)
        for each in (3, 11):
            format_by(tools, nodes[each], "--no-initial-controllers", *NEWEST)
        quorum.start()

        def voters() -> list[int]:
            described = quorum.described()
            return [] if described is None else sorted(each.replica_id for each in described.current_voters)

        eventually(lambda: voters() == [1, 2, 3], PATIENCE_S)
        quorum.active().stop()
        walk = MetadataWalk(quorum)
        walk.make_topic("t")
        walk.read_all()


def test_two_directories_and_one_for_the_metadata(tools: WarmTools, tmp_path: Path) -> None:
    quorum = EitherQuorum(tmp_path / "nodes", {1: BOTH}, OTTLA, voters="standalone")
    with contextlib.closing(quorum):
        (node,) = quorum.nodes.values()
        node.data_folders.append(node.folder / "data-2")
        quorum.configure(node, metadata_log_dir=str(node.folder / "metadata"))
        format_by(tools, node, "--standalone", *NEWEST)
        quorum.start()
        walk = MetadataWalk(quorum)
        walk.make_topic("t")
        quorum.stop()
        told = tools.run("storage", "info", "--config", str(node.file))
        assert told.code == 0, told.printed
        assert f"cluster.id={CLUSTER_ID}" in told.printed or f"cluster.id: {CLUSTER_ID}" in told.printed
        quorum.start()
        walk.read_all()


def test_features_that_ottla_lacks(tools: WarmTools, tmp_path: Path) -> None:
    """The start ends with the options that leave them out."""
    quorum = EitherQuorum(tmp_path / "nodes", {1: BOTH}, OTTLA, voters="standalone")
    with contextlib.closing(quorum):
        (node,) = quorum.nodes.values()
        format_by(tools, node, "--standalone")
        node.launch()
        eventually(lambda: not node.is_running, PATIENCE_S)
        assert "format them with --feature streams.version=0" in node.log()
