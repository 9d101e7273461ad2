"""The metadata log of a broker in a folder beside its log directories: whose it is, who may use it, and what its failure
means."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.broker.server import BrokerFailedError, StartError

from ..helpers.quorum_world import QuorumWorld, quorum_world

Clock = trio.testing.MockClock
LOG = "__cluster_metadata-0"


async def start_fails(world: QuorumWorld, why: str, broker_id: int = 1, **properties: str) -> None:
    with trio.fail_after(100), pytest.raises(StartError, match=why):
        await world.make_server(broker_id, **properties).serve()


async def test_it_has_the_log_and_nothing_of_partitions(tmp_path: Path, autojump_clock: Clock) -> None:
    metadata = tmp_path / "m"
    async with quorum_world(tmp_path) as world:
        for name in ("a", "b"):
            async with world.running(metadata_log_dir=str(metadata)) as broker:
                world.controller.make_topic(name)
                await broker.sees("a")
                await broker.sees(name)
                assert broker.server.assembly is not None
                logs = broker.server.assembly.logs
                assert len(logs.folders) == 1
                assert logs.metadata_log_dir is not None
                logs.metadata_log_dir.checkpoint_now()
                assert len(world.controller.registrations[-1].log_dirs) == 1
        assert {path.name for path in (metadata / LOG).iterdir()} >= {"quorum-state", "00000000000000000000.log"}
        assert not (tmp_path / "1-0" / LOG).exists()
        assert {path.name for path in metadata.iterdir()} == {LOG, "meta.properties", "bootstrap.checkpoint", ".lock"}
        assert world.controller.registrations[-1].previous_broker_epoch > 0


async def test_it_is_locked_while_the_broker_runs(tmp_path: Path, autojump_clock: Clock) -> None:
    metadata = str(tmp_path / "m")
    async with quorum_world(tmp_path) as world:
        async with world.running(metadata_log_dir=metadata):
            await start_fails(
                world,
                f"{metadata} is in use by another process",
                1,
                log_dirs=str(tmp_path / "other"),
                listeners="PLAINTEXT://other:9092",
                metadata_log_dir=metadata,
            )
        async with world.running(metadata_log_dir=metadata):
            pass


async def test_it_has_to_be_formatted_for_this_node(tmp_path: Path, autojump_clock: Clock) -> None:
    metadata = tmp_path / "m"
    async with quorum_world(tmp_path) as world:
        world.format(1, metadata_dir=str(metadata))
        properties = (metadata / "meta.properties").read_text()
        server = world.make_server(metadata_log_dir=str(metadata))
        (metadata / "meta.properties").write_text(properties.replace("node.id=1", "node.id=2"))
        with trio.fail_after(100), pytest.raises(StartError, match="Stored node id 2 doesn't match previous node id 1"):
            await server.serve()
        (metadata / "meta.properties").unlink()
        server = world.make_server(metadata_log_dir=str(metadata))
        (metadata / "meta.properties").unlink()
        with trio.fail_after(100), pytest.raises(StartError, match=rf"No `meta.properties` found in {metadata}"):
            await server.serve()


async def test_a_log_that_was_elsewhere_is_not_passed_over(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        async with world.running():
            pass
        why = rf"Found unexpected metadata location in data directory `{tmp_path}/1-0/{LOG}`"
        await start_fails(world, why, metadata_log_dir=str(tmp_path / "m"))


async def test_a_data_folder_under_another_name_is_no_folder_beside_them(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        world.format(1)
        async with world.running(metadata_log_dir=f"{tmp_path}/./1-0/") as broker:
            assert broker.server.assembly is not None
            assert broker.server.assembly.logs.metadata_log_dir is None
        assert (tmp_path / "1-0" / LOG / "quorum-state").exists()


async def test_its_failure_stops_the_broker(tmp_path: Path, autojump_clock: Clock) -> None:
    metadata = str(tmp_path / "m")
    async with quorum_world(tmp_path) as world:
        server = world.make_server(metadata_log_dir=metadata)
        ready = trio.Event()
        with pytest.RaisesGroup(
            pytest.RaisesExc(BrokerFailedError, match=f"{metadata}, which has the cluster's state")
        ):
            async with trio.open_nursery() as nursery:

                async def serve() -> None:
                    await server.serve(ready.set)

                nursery.start_soon(serve)
                await ready.wait()
                assert server.assembly is not None
                folder = server.assembly.logs.metadata_log_dir
                assert folder is not None
                folder.fail("a test", OSError(5, "gone"))
                with trio.fail_after(120):
                    await trio.sleep_forever()
