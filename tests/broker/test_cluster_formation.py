"""Nodes form a cluster, join one, and are refused, as ``ottla serve --cluster`` has them: in one loop, on a network in memory."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.broker.cluster_formation import form_cluster
from ottla.broker.config_file import load_config
from ottla.broker.formation.node_list import cluster_properties, parse_nodes
from ottla.broker.formation.protocol import FormationProposal, FormationRecord
from ottla.broker.formation.record import FormationStore
from ottla.broker.server import BrokerServer, StartError
from ottla.log.checkpoints import MetaProperties, read_meta_properties, write_meta_properties
from ottla.log.memory_disk import MemoryDisk

LIST = "localhost:9092,localhost:9192,localhost:9292"
SECONDS = 100.0


class World:
    """Disks of nodes by their numbers, and one network."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.network = MemoryNetwork(1 << 20)
        self.disks = {number: MemoryDisk() for number in range(1, 6)}
        self._nursery = nursery

    def properties(self, number: int, nodes: str = LIST, **own: str) -> dict[str, str]:
        """``own`` have _ for the dots."""
        given = {name.replace("_", "."): value for name, value in own.items()}
        small = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
        listen = f"localhost:{9992 + number}" if number > 3 else None
        return cluster_properties(
            {"cluster.nodes": nodes, "node.id": str(number), "log.dirs": "/data", **small, **given}, listen
        )

    async def form(self, number: int, nodes: str = LIST, **own: str) -> None:
        """Raises StartError."""
        await form_cluster(
            load_config(self.properties(number, nodes, **own)),
            network=self.network,
            clock=SimulatedClock(),
            workers=InlineWorkers(),
            disk=self.disks[number],
            randomness=random.Random(number),
        )

    async def serve(self, number: int, ready: trio.Event, **own: str) -> None:
        await self.form(number, **own)
        server = BrokerServer(
            load_config(self.properties(number, **own)),
            network=self.network,
            clock=SimulatedClock(),
            workers=InlineWorkers(),
            disk=self.disks[number],
            randomness=random.Random(number),
        )
        await server.serve(ready.set)

    async def start(self, *numbers: int, **own: str) -> None:
        """Have nodes form or join and serve, until the test ends."""
        events = [trio.Event() for _ in numbers]
        for number, ready in zip(numbers, events, strict=True):
            self._nursery.start_soon(lambda number=number, ready=ready: self.serve(number, ready, **own))
        with trio.fail_after(SECONDS):
            for ready in events:
                await ready.wait()

    async def form_all(self, *numbers: int, **own: str) -> None:
        with trio.fail_after(SECONDS):
            async with trio.open_nursery() as nursery:
                for number in numbers:
                    nursery.start_soon(lambda number=number: self.form(number, **own))

    def identity(self, number: int) -> MetaProperties | None:
        return read_meta_properties(self.disks[number], "/data")


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        yield World(nursery)
        nursery.cancel_scope.cancel()


def run(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))


def secret_file(folder: Path, text: str = "a secret of more than sixteen") -> str:
    path = folder / f"secret-{len(text)}"
    path.write_text(text)
    return str(path)


def test_three_nodes_become_first_voters_of_one_cluster_and_a_fourth_joins() -> None:
    async def scenario() -> None:
        async with world() as nodes:
            await nodes.start(1, 2, 3)
            await nodes.form_all(4)
            found = [nodes.identity(number) for number in (1, 2, 3, 4)]
            assert len({each.cluster_id for each in found if each is not None}) == 1
            assert [each.broker_id for each in found if each is not None] == [1, 2, 3, 4]
            assert "cluster-formation.json" not in nodes.disks[1].names("/data")
            first = nodes.disks[1].read_file("/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
            assert first == nodes.disks[2].read_file(
                "/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
            )

    run(scenario)


def test_one_node_alone_in_its_list_is_a_cluster_at_once() -> None:
    async def scenario() -> None:
        async with world() as nodes:
            with trio.fail_after(1):
                await nodes.form(1, "localhost:9092")
            assert nodes.identity(1) is not None

    run(scenario)


def test_a_node_waits_for_all_and_says_for_whom(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world() as nodes:
            with caplog.at_level(logging.INFO), trio.move_on_after(SECONDS):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(nodes.form, 1)
                    nursery.start_soon(nodes.form, 2)
            assert nodes.identity(1) is nodes.identity(2) is None
            assert any("node 3 at localhost:9292: " in line for line in caplog.messages)

    run(scenario)


def test_nodes_with_different_lists_form_nothing_and_say_both(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world() as nodes:
            with caplog.at_level(logging.INFO), trio.move_on_after(SECONDS):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(nodes.form, 1)
                    nursery.start_soon(nodes.form, 2, "localhost:9092,localhost:9192")
                    nursery.start_soon(nodes.form, 3)
            assert nodes.identity(1) is nodes.identity(2) is None
            told = f"it wants to form a cluster of localhost:9092,localhost:9192, and this node one of {LIST}"
            assert any(told in line for line in caplog.messages)

    run(scenario)


def test_a_secret_is_asked_for_in_the_formation_and_by_the_controllers(tmp_path: Path) -> None:
    own = {"cluster_secret_file": secret_file(tmp_path)}

    async def scenario() -> None:
        async with world() as nodes:
            await nodes.start(1, 2, 3, **own)
            await nodes.start(4, **own)
            with pytest.raises(trio.TooSlowError), trio.fail_after(SECONDS):
                await nodes.form(5)

    run(scenario)


def test_a_node_with_another_secret_is_no_part_of_the_cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world() as nodes:
            with caplog.at_level(logging.INFO), trio.move_on_after(SECONDS):
                async with trio.open_nursery() as nursery:
                    for number, text in enumerate(
                        ("the secret of both", "the secret of both", "another secret than theirs"), 1
                    ):
                        file = secret_file(tmp_path, text)
                        nursery.start_soon(
                            lambda number=number, file=file: nodes.form(number, cluster_secret_file=file)
                        )
            assert [nodes.identity(number) for number in (1, 2, 3)] == [None] * 3
            assert any("authentication by SCRAM-SHA-512 has failed" in line for line in caplog.messages)

    run(scenario)


@pytest.mark.parametrize("is_node", [True, False])
def test_an_authorizer_is_asked_whether_a_client_may_do_what_nodes_do(
    is_node: bool, caplog: pytest.LogCaptureFixture
) -> None:
    own = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    own["super_users"] = "User:ANONYMOUS" if is_node else "User:admin"

    async def scenario() -> None:
        async with world() as nodes:
            with trio.move_on_after(30), caplog.at_level(logging.INFO):
                await nodes.form_all(1, 2, 3, **own)
            assert all((nodes.identity(number) is not None) is is_node for number in (1, 2, 3))

    run(scenario)
    assert ("The access rules are not loaded yet" in caplog.text) is not is_node  # but for super users
    assert "Traceback" not in caplog.text


def test_a_formatted_node_goes_on_without_the_others() -> None:
    async def scenario() -> None:
        async with world() as nodes:
            await nodes.form_all(1, 2, 3)
            before = nodes.identity(1)
            with trio.fail_after(1):
                await nodes.form(1)
            assert nodes.identity(1) == before

    run(scenario)


def test_directories_of_another_kind_of_broker_are_refused() -> None:
    async def scenario() -> None:
        async with world() as nodes:
            nodes.disks[1].make_dir("/data")
            write_meta_properties(nodes.disks[1], "/data", MetaProperties(1, "some-cluster"))
            with pytest.raises(StartError, match="needs separate log directories"):
                await nodes.form(1)
            nodes.disks[2].make_dir("/data/__cluster_metadata-0")
            with pytest.raises(StartError, match="is not formatted"):
                await nodes.form(2)

    run(scenario)


def test_a_promise_is_not_given_up_for_another_list() -> None:
    async def scenario() -> None:
        async with world() as nodes:
            store = FormationStore(nodes.disks[1], ["/data"], "/data")
            store.make_log_dirs()
            promise = FormationProposal(1, "AQEBAQEBAQEBAQEBAQEBAQ", 1, {}, (b"1" * 16, b"2" * 16, b"3" * 16))
            store.save(FormationRecord(b"1" * 16, 1, parse_nodes(LIST), promise))
            with pytest.raises(StartError, match="Start it with the first list"):
                await nodes.form(1, "localhost:9092,localhost:9192")

    run(scenario)
