"""What ``ottla cluster quorum`` and its siblings refuse, and what the page on them does not show: on three nodes and a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.session import eventually

from ..helpers.command import LIMIT_S, Command
from ..helpers.quorum_nodes import CLUSTER_ID, QuorumNode, start_all

pytestmark = pytest.mark.slow
BROKER = 4
SILENT_MS = 5_000


def configure(node: QuorumNode, controllers: dict[str, str], roles: str = "broker,controller") -> None:
    listeners = {"broker": f"PLAINTEXT://{node.address}", "controller": f"CONTROLLER://{node.controller_address}"}
    given = {
        "process.roles": roles,
        "node.id": node.node_id,
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners[role] for role in roles.split(",")),
        "log.dirs": f"data-{node.node_id}",
        **controllers,
    }
    (node.folder / node.file).write_text("".join(f"{name}={value}\n" for name, value in given.items()))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, QuorumNode]]:
    folder = tmp_path_factory.mktemp("quorum")
    with ExitStack() as stack:
        nodes = {each: stack.enter_context(closing(QuorumNode(folder, each))) for each in (1, 2, 3, BROKER)}
        first = [nodes[each] for each in (1, 2, 3)]
        bootstrap = {"controller.quorum.bootstrap.servers": ",".join(each.controller_address for each in first)}
        for node in first:
            configure(node, bootstrap)
            node.format("-I", ",".join(each.voter for each in first))
        configure(nodes[BROKER], bootstrap, "broker")
        nodes[BROKER].format("-N")
        start_all(nodes.values())
        yield nodes


@pytest.fixture
def ottla(nodes: dict[int, QuorumNode]) -> Command:
    return Command(",".join(nodes[each].address for each in (1, 2)))


def failure(ottla: Command, *arguments: str, code: int = 1) -> str:
    """What the command says that ends so."""
    done = ottla.run("cluster", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


def described(ottla: Command) -> dict[int, Any]:
    quorum = json.loads(ottla("cluster", "quorum", "--json"))
    return {each["node"]: each for each in quorum["replicas"]}


def test_any_controller_tells_who_leads(ottla: Command, nodes: dict[int, QuorumNode]) -> None:
    told = [
        json.loads(ottla("cluster", "quorum", "--json", "--controller", nodes[each].controller_address))
        for each in (1, 2, 3)
    ]
    assert len({(each["cluster_id"], each["leader"], each["leader_epoch"]) for each in told}) == 1
    assert told[0]["cluster_id"] == CLUSTER_ID
    statuses = {each["node"]: each["status"] for each in told[0]["replicas"]}
    assert sorted(statuses.values()) == ["follower", "follower", "leader", "observer"]
    assert statuses[BROKER] == "observer"
    (own,) = [each for each in told[0]["replicas"] if each["node"] == 2]
    assert own["endpoints"] == [f"CONTROLLER://{nodes[2].controller_address}"]
    away = f"127.0.0.1:1,{nodes[2].controller_address}"
    assert json.loads(ottla("cluster", "quorum", "--json", "--controller", away))["leader"] == told[0]["leader"]


def test_a_pipe_gets_a_line_for_each_node(ottla: Command) -> None:
    lines = ottla("cluster", "quorum").splitlines()
    rows = [line.split("\t") for line in lines if "\t" in line]
    assert [(row[0], len(row)) for row in rows] == [(str(each), 8) for each in (1, 2, 3, BROKER)]
    assert "kraft version: 1" in lines


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", "no controller answers at 127.0.0.1:1 (connection refused)"),
        ("broker", "does not take DESCRIBE_QUORUM|CONTROLLER"),
    ],
    ids=["nobody", "a broker"],
)
def test_what_is_no_controller(ottla: Command, nodes: dict[int, QuorumNode], address: str, why: str) -> None:
    told = failure(ottla, "quorum", "--controller", nodes[BROKER].address if address == "broker" else address)
    assert any(each in told for each in why.split("|")), told


def test_who_cannot_become_a_voter(ottla: Command) -> None:
    assert "node 9 does not follow the quorum: start it" in failure(ottla, "add-voter", "9", "--timeout-ms", "0")
    broker = failure(ottla, "add-voter", str(BROKER), "--timeout-ms", "0")
    assert f"node {BROKER} has not registered as a controller" in broker
    assert ottla("cluster", "add-voter", "2") == "Node 2 is a voter already.\n"
    assert "--endpoint takes LISTENER://" in failure(ottla, "add-voter", "9", "--endpoint", "ottla-9:9093", code=2)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--feature", "metadata.version"], "--feature takes NAME=LEVEL"),
        (["--feature", "transaction.version=0"], "transaction.version is at level 2: a lower one takes --downgrade"),
        (["--feature", "transaction.version=3", "--downgrade"], "3 is not a downgrade"),
        (["--downgrade"], "--downgrade needs --feature, or --release-version"),
        (["--release-version", "9.9"], "Unknown metadata.version '9.9'"),
        (["--release-version", "4.2", "--feature", "a=1"], "cannot be given together"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_levels_that_make_no_sense(ottla: Command, options: list[str], why: str) -> None:
    assert why in failure(ottla, "upgrade", *options, code=2)


def test_levels_are_raised_and_lowered_or_all_refused(ottla: Command) -> None:
    elr = "eligible.leader.replicas.version"

    def levels() -> dict[str, int]:
        told = json.loads(ottla("cluster", "upgrade", "--dry-run", "--json"))
        return {each["feature"]: each["finalized"] for each in told["features"]}

    before = levels()
    assert before[elr] == 1
    both = ("upgrade", "--downgrade", "--feature", f"{elr}=0", "--feature", "metadata.version=4.2")
    refused = failure(ottla, *both)
    assert "metadata.version" in refused and "might delete metadata" in refused
    assert levels() == before, "all or none"
    lowered = ottla("cluster", "upgrade", "--downgrade", "--feature", f"{elr}=0")
    assert f"{elr}\t1\t0-1\t0\tset" in lowered
    assert levels() == {**before, elr: 0}
    assert f"{elr}\t0\t0-1\t1\tset" in ottla("cluster", "upgrade")
    assert "only supports versions 7-30" in failure(ottla, "upgrade", "--feature", "metadata.version=31")


def test_a_broker_is_forgotten_once_it_is_gone(ottla: Command, nodes: dict[int, QuorumNode]) -> None:
    assert f"broker {BROKER} runs: stop it first" in failure(ottla, "unregister", str(BROKER))
    ottla("topics", "create", "everywhere", "-p", "1", "-r", "4")
    nodes[BROKER].stop()
    assert "has replicas of 1 partition: move them first" in failure(ottla, "unregister", str(BROKER))
    ottla("topics", "delete", "everywhere")
    assert ottla("cluster", "unregister", str(BROKER)) == f"Broker {BROKER} is registered no more.\n"
    assert "not currently registered" in failure(ottla, "unregister", str(BROKER))


def test_dead_voters_are_removed_before_live_ones(ottla: Command, nodes: dict[int, QuorumNode]) -> None:
    """The last test: two voters are left by it."""
    assert "node 9 is not a voter. The voters: 1, 2, 3." in failure(ottla, "remove-voter", "9")
    nodes[3].kill()

    def is_silent() -> bool:
        ago = described(ottla)[3]["last_fetch_ms"]
        return ago is None or ago > SILENT_MS

    eventually(is_silent, LIMIT_S)
    refused = failure(ottla, "remove-voter", "2")
    assert "without node 2 there is no majority: of the other 2 voters, 3 has not fetched for 5 s" in refused
    assert set(described(ottla)) >= {1, 2, 3}
    assert "Node 3 is not a voter any more. The voters: 1, 2." in ottla("cluster", "remove-voter", "3")


def test_voters_that_are_a_property_become_records(tmp_path: Path) -> None:
    with closing(QuorumNode(tmp_path, 1)) as node:
        configure(node, {"controller.quorum.voters": f"1@{node.controller_address}"})
        node.format("--release-version", "4.3")
        node.start()
        ottla = Command(node.address)
        assert "kraft.version\t0\t0-1\t1\tset" in ottla("cluster", "upgrade")
        quorum = json.loads(ottla("cluster", "quorum", "--json"))
        assert quorum["kraft_version"] == 1
        assert [each["status"] for each in quorum["replicas"]] == ["leader"]
        assert "node 1 is the only voter" in failure(ottla, "remove-voter", "1")
