"""A broker's life in a cluster of KRaft, whose controller the test plays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.broker.server import StartError
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.handlers.config_resources import ConfigResourceKind
from ottla.log.log_directory import LogDirectory
from ottla.metadata.types import UNASSIGNED_DIRECTORY, PartitionRegistration
from ottla.replication.replica_manager import ReplicaManager
from ottla.wire.headers import decode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.records import iter_batches
from ottla.wire.schema import Message

from ..helpers.collected_metrics import collected
from ..helpers.quorum_world import SECONDS, Broker, QuorumWorld, quorum_world

Clock = trio.testing.MockClock


async def values(broker: Broker, topic: str) -> list[bytes]:
    """The values in partition 0."""
    response = await broker.ask(fetch_request(topic, {0: 0}), 12)
    (partition,) = response.responses[0].partitions
    assert not partition.error_code
    return [record.value or b"" for each in iter_batches(partition.records or b"") for record in each.records()]


async def produce(broker: Broker, topic: str, *wanted: bytes) -> None:
    response = await broker.ask(produce_request(topic, {0: batch(*wanted)}), 9)
    assert response.responses[0].partition_responses[0].error_code == 0


async def test_it_registers_is_unfenced_and_serves(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running(broker_rack="a") as broker:
        (registration,) = world.controller.registrations
        assert (registration.broker_id, registration.rack, registration.previous_broker_epoch) == (1, "a", -1)
        assert [(each.name, each.host, each.port) for each in registration.listeners] == [
            ("PLAINTEXT", "broker1", 9092)
        ]
        assert {each.name: each.max_supported_version for each in registration.features}["metadata.version"] == 30
        world.controller.make_topic("t")
        await broker.sees("t")
        await produce(broker, "t", b"a", b"b")
        assert await values(broker, "t") == [b"a", b"b"]
        metadata = await broker.ask(MetadataRequest(topics=None), 12)
        assert [(each.node_id, each.host, each.rack) for each in metadata.brokers] == [(1, "broker1", "a")]
        assert metadata.controller_id == 1
        assert [topic.name for topic in metadata.topics] == ["t"]


async def test_heartbeats_say_what_is_applied_and_go_on(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running(broker_heartbeat_interval_ms="1000"):
        assert world.controller.heartbeats[0].want_fence
        assert not world.controller.heartbeats[-1].want_fence
        count = len(world.controller.heartbeats)
        world.controller.make_topic("t")
        await trio.sleep(10.5)
        assert 9 <= len(world.controller.heartbeats) - count <= 12
        assert world.controller.heartbeats[-1].current_metadata_offset == world.controller.end_offset - 1


async def test_log_directories_that_the_log_could_not_keep_are_told_after_an_upgrade(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with quorum_world(tmp_path) as world:
        controller = world.controller
        controller.keeps_directories = False
        controller.append(FeatureLevelRecord(name="metadata.version", feature_level=16))
        async with world.running() as broker:
            epoch, image = broker.services.cluster.broker_epoch, broker.services.metadata
            await trio.sleep(10)
            assert len(controller.registrations) == 1
            controller.keeps_directories = True
            controller.append(FeatureLevelRecord(name="metadata.version", feature_level=17))
            with trio.fail_after(SECONDS):
                await image.wait_until(lambda: bool(image.image.quorum_brokers[1].directories))
            first, second = controller.registrations
            assert (second.incarnation_id, second.log_dirs) == (first.incarnation_id, first.log_dirs)
            assert (broker.services.cluster.broker_epoch, image.image.quorum_brokers[1].is_fenced) == (epoch, False)
            await trio.sleep(10)
            assert len(controller.registrations) == 2


async def test_before_it_is_unfenced_it_accepts_no_client(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        world.controller.is_unfencing = False
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                async with world.running() as broker:
                    assert broker.server.readiness()["listeners_open"]

            nursery.start_soon(serve)
            await trio.sleep(20)
            assert not world.controller.heartbeats[-1].want_fence
            world.controller.is_unfencing = True


async def test_a_stop_is_asked_for_and_leaves_the_epoch_that_the_next_start_tells(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with quorum_world(tmp_path) as world:
        async with world.running() as broker:
            epoch = broker.services.cluster.broker_epoch
            world.controller.make_topic("t")
            await broker.sees("t")
            await produce(broker, "t", b"a")
        assert world.controller.heartbeats[-1].want_shut_down
        mark = (tmp_path / "1-0" / ".kafka_cleanshutdown").read_text()
        assert json.loads(mark) == {"version": 0, "brokerEpoch": epoch}
        async with world.running() as broker:
            assert world.controller.registrations[-1].previous_broker_epoch == epoch
            await broker.sees("t")
            assert await values(broker, "t") == [b"a"]
        (world.folder / "1-0" / ".kafka_cleanshutdown").unlink()
        async with world.running():
            assert world.controller.registrations[-1].previous_broker_epoch == -1


async def test_a_topic_that_is_deleted_loses_its_log_and_one_of_the_same_name_is_empty(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:
        world.controller.make_topic("t", configs={"file.delete.delay.ms": "0"})
        await broker.sees("t")
        await produce(broker, "t", b"a")
        world.controller.remove_topic("t")
        world.controller.make_topic("t")
        await broker.services.metadata.wait_until(
            lambda: broker.services.metadata.topic_id("t") == world.controller.topics["t"]
        )
        assert await values(broker, "t") == []
        await produce(broker, "t", b"b")
        assert await values(broker, "t") == [b"b"]


async def test_logs_that_no_replica_has_are_set_aside_at_the_start(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        async with world.running() as broker:
            for name in ("kept", "gone", "moved"):
                world.controller.make_topic(name)
                await broker.sees(name)
                await produce(broker, name, b"a")
        world.controller.remove_topic("gone")
        async with world.running() as broker:
            await broker.sees("kept")
            assert await values(broker, "kept") == [b"a"]
        names = sorted(path.name for path in (tmp_path / "1-0").iterdir() if path.is_dir())
        assert [name for name in names if name.startswith("gone")] == [
            name for name in names if name.endswith("-stray")
        ]
        assert "kept-0" in names


async def test_a_start_follows_what_its_registration_has_changed_and_not_what_was_before(
    tmp_path: Path, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller takes the leaderships of a broker that was killed from it, when it registers again."""
    leaders: list[int] = []
    apply = ReplicaManager.apply

    def noted(
        self: ReplicaManager, topic: str, topic_id: bytes, number: int, state: PartitionRegistration, *rest: Any
    ) -> None:
        leaders.append(state.leader)
        apply(self, topic, topic_id, number, state, *rest)

    monkeypatch.setattr(ReplicaManager, "apply", noted)
    async with quorum_world(tmp_path) as world:
        controller = world.controller
        controller.replicas = [1, 2]
        topic_id = controller.make_topic("t")
        register = controller.answers[BrokerRegistrationRequest]

        def take_and_register(request: BrokerRegistrationRequest) -> Message:
            controller.change(topic_id, 0, leader=2, isr=[2])
            return register(request)

        controller.answers[BrokerRegistrationRequest] = take_and_register
        async with world.running() as broker:
            await broker.sees("t")
            assert leaders == [2]


async def test_what_clients_change_is_forwarded_with_who_they_are(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:
        request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)])
        response = await broker.ask(request, 7)
        assert [(each.name, each.error_code) for each in response.topics] == [("t", 0)]
        assert response.topics[0].topic_id == world.controller.topics["t"]
        (envelope,) = world.controller.envelopes
        assert envelope.request_principal == bytes.fromhex("00000555736572" + "0a414e4f4e594d4f5553" + "0000")
        header, _ = decode_request_header(envelope.request_data)
        assert (header.api_version, header.client_id) == (7, "test")
        again = await broker.ask(request, 7)
        assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_what_it_could_not_run_with_is_refused_and_the_rest_forwarded(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:

        async def alter(*resources: tuple[int, str, str, str]) -> list[tuple[str, ErrorCode]]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value)]
                    )
                    for kind, name, key, value in resources
                ]
            )
            response = await broker.ask(request, 1)
            return [(each.resource_name, ErrorCode(each.error_code)) for each in response.responses]

        assert await alter(
            (ConfigResourceKind.TOPIC, "t", "retention.ms", "1"),
            (ConfigResourceKind.BROKER, "1", "log.cleaner.threads", "100"),
            (ConfigResourceKind.BROKER, "2", "log.cleaner.threads", "1"),
            (ConfigResourceKind.BROKER, "", "log.retention.ms", "1000"),
            (ConfigResourceKind.BROKER_LOGGER, "1", "kafka", "DEBUG"),
            (99, "x", "retention.ms", "1"),
        ) == [
            ("t", ErrorCode.NONE),
            ("1", ErrorCode.INVALID_REQUEST),
            ("2", ErrorCode.INVALID_REQUEST),
            ("", ErrorCode.NONE),
            ("1", ErrorCode.INVALID_CONFIG),
            ("x", ErrorCode.INVALID_REQUEST),
        ]
        (envelope,) = world.controller.envelopes
        assert b"cleaner" not in envelope.request_data
        key = (ConfigResourceKind.BROKER, "1", "listener.name.plaintext.ssl.key.password", "secret")
        assert await alter(key) == [("1", ErrorCode.NONE)]  # the metadata log has passwords in the clear


async def test_a_topic_that_a_client_names_is_made(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
        with trio.fail_after(30):
            while (await broker.ask(request, 12)).topics[0].error_code:
                await trio.sleep(0.1)
        await produce(broker, "new", b"a")


async def test_producer_ids_come_from_the_controller(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:
        given = []
        for _ in range(3):
            response = await broker.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
            assert response.error_code in (0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            given.append(response.producer_id)
            await trio.sleep(1)
        assert given[-2:] == [given[-1] - 1, given[-1]]


async def test_features_are_those_of_the_log(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:
        response: ApiVersionsResponse = await broker.ask(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4
        )
        finalized = {each.name: each.max_version_level for each in response.finalized_features}
        assert finalized == {"metadata.version": 30, "transaction.version": 2}
        assert response.finalized_features_epoch == world.controller.end_offset - 1
        assert {each.name for each in response.supported_features} >= {"kraft.version", "transaction.version"}
        keys = {each.api_key for each in response.api_keys}
        assert {55, 57, 64, 80, 81} <= keys
        assert not {4, 5, 6, 7, 56, 67} & keys
        older = await broker.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
        assert [each.name for each in older.supported_features] == ["metadata.version"]


async def test_metrics_say_how_far_the_metadata_log_has_come(tmp_path: Path, autojump_clock: Clock) -> None:
    def scraped() -> dict[str, float]:
        samples = [sample for family in collected(broker.server) for sample in family.samples]
        return {sample.name: sample.value for sample in samples if not sample.labels}

    async with quorum_world(tmp_path) as world, world.running() as broker:
        world.controller.make_topic("t", 1)
        await broker.sees("t")
        raft, metadata, found = "kafka_server_raft_metrics_", "kafka_server_broker_metadata_metrics_", scraped()
        end = world.controller.end_offset
        assert [found[raft + name] for name in ("current_leader", "current_epoch")] == [1, 1]
        assert [found[raft + name] for name in ("high_watermark", "log_end_offset", "log_end_epoch")] == [end, end, 1]
        assert found[metadata + "last_applied_record_offset"] == end - 1
        assert found[metadata + "last_applied_record_timestamp"] == 1000
        assert found[metadata + "last_applied_record_lag_ms"] > 0
        assert found["kafka_server_metadataloader_currentmetadataversion"] == 30
        assert found["kafka_server_sessionexpirelistener_zookeepersyncconnects_total"] == 0


async def test_dynamic_configs_are_those_of_the_log(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        world.controller.append(ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="5000"))
        async with world.running() as broker:
            assert broker.services.config.effective()["log.retention.ms"] == "5000"
            world.controller.append(
                ConfigRecord(resource_type=4, resource_name="1", name="log.retention.ms", value="7000")
            )
            with trio.fail_after(30):
                while broker.services.config.effective()["log.retention.ms"] != "7000":
                    await trio.sleep(0.1)
            topic = world.controller.make_topic("t", configs={"max.message.bytes": "1234"})
            await broker.sees("t")
            assert broker.services.replicas.by_number("t")[0].log.settings.max_message_bytes == 1234
            assert broker.services.metadata.topic_id("t") == topic


@pytest.mark.parametrize("known", [UNASSIGNED_DIRECTORY, b"the disk before!"])
async def test_a_disk_that_was_replaced_is_told_of(tmp_path: Path, autojump_clock: Clock, known: bytes) -> None:
    """Otherwise the controller would take the replicas for offline, and elect none of them."""
    async with quorum_world(tmp_path) as world:
        told: list[bytes] = []

        def assign(request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
            told.extend(directory.id for directory in request.directories)
            return AssignReplicasToDirsResponse()

        world.controller.answers[AssignReplicasToDirsRequest] = assign
        world.controller.directory = known
        world.controller.make_topic("t")
        async with world.running() as broker:
            await broker.sees("t")
            await trio.sleep(1)
            wanted = world.controller.registrations[0].log_dirs
            assert told == ([] if known == UNASSIGNED_DIRECTORY else wanted)


async def test_several_folders_are_registered_and_replicas_assigned(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        asked: list[AssignReplicasToDirsRequest] = []

        def assign(request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
            asked.append(request)
            return AssignReplicasToDirsResponse()

        world.controller.answers[AssignReplicasToDirsRequest] = assign
        async with world.running(folders=2) as broker:
            directories = world.controller.registrations[0].log_dirs
            assert len(set(directories)) == 2
            topic_id = world.controller.make_topic("t", 4)
            await broker.sees("t")
            await trio.sleep(1)
            told = {
                each.partition_index: directory.id
                for request in asked
                for directory in request.directories
                for topic in directory.topics
                if topic.topic_id == topic_id
                for each in topic.partitions
            }
            assert sorted(told) == [0, 1, 2, 3]
            assert set(told.values()) == set(directories)


async def test_a_log_changes_its_folder_once_the_controller_knows(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running(folders=2) as broker:
        one, other = broker.services.logs.folders
        world.controller.make_topic("t", 1)
        await broker.sees("t")
        partition = broker.services.replicas.partition("t", 0)
        begun, aim = partition.log.folder, other if partition.log.folder is one else one
        told: list[tuple[bytes, LogDirectory]] = []
        is_away = True

        def assign(request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
            told.extend((directory.id, partition.log.folder) for directory in request.directories)
            return AssignReplicasToDirsResponse(error_code=ErrorCode.NOT_CONTROLLER if is_away else ErrorCode.NONE)

        world.controller.answers[AssignReplicasToDirsRequest] = assign
        broker.services.log_dir_moves.alter("t", 0, aim.path)
        await trio.sleep(5)
        assert partition.log.folder is begun
        is_away = False
        with trio.fail_after(SECONDS):
            while partition.log.folder is begun:
                await trio.sleep(0.1)
        said_to_be_there = broker.services.logs.directory_id(aim)
        assert {folder for directory, folder in told if directory == said_to_be_there} == {begun}


async def test_two_brokers_replicate_and_one_takes_over(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running(1, replica_lag_time_max_ms="2000") as first:
        world.controller.replicas = [2, 1]
        async with world.running(2, replica_lag_time_max_ms="2000") as second:
            world.controller.make_topic("t")
            await second.sees("t")
            await first.sees("t")
            await produce(second, "t", b"a", b"b")
        await first.services.metadata.wait_until(lambda: first.services.replicas.by_number("t")[0].is_leader)
        assert await values(first, "t") == [b"a", b"b"]
        nodes = (await first.ask(DescribeClusterRequest(), 1)).brokers
        assert [each.broker_id for each in nodes] == [1]


async def test_clients_are_told_of_live_brokers_or_of_the_one_that_answers_where_all_are_fenced(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    """Without any broker in a response librdkafka has nobody to ask again."""
    async with quorum_world(tmp_path) as world, world.running(1, broker_rack="a") as first, world.running(2):
        await first.services.metadata.wait_until(lambda: first.services.metadata.is_alive(2))
        told = []
        for fenced in (1, 2):
            world.controller.fence(fenced)
            await first.services.metadata.wait_until(lambda fenced=fenced: not first.services.metadata.is_alive(fenced))
            brokers = (await first.ask(MetadataRequest(topics=[]), 12)).brokers
            told.append([(each.node_id, each.host, each.port, each.rack) for each in brokers])
        assert told == [[(2, "broker2", 9092, None)], [(1, "broker1", 9092, "a")]]
        world.controller.is_unfencing = True


async def start_fails(world: QuorumWorld, why: str, **properties: str) -> None:
    with pytest.raises(StartError, match=why):
        await world.make_server(1, **properties).serve()


async def test_what_a_start_refuses(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        await start_fails(world, "controller.listener.names", controller_listener_names="")
        await start_fails(world, "process.roles is set", zookeeper_connect="z:2181")
        world.controller.refusal_to_register = ErrorCode.UNSUPPORTED_VERSION
        await start_fails(world, r"has not registered this broker \(UNSUPPORTED_VERSION\)")
        world.controller.refusal_to_register = ErrorCode.NONE
        server = world.make_server()
        (tmp_path / "1-0" / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=x\n")
        with pytest.raises(StartError, match="Found unexpected version"):
            await server.serve()
        (tmp_path / "1-0" / "meta.properties").unlink()
        server = world.make_server()
        (tmp_path / "1-0" / "meta.properties").unlink()
        with pytest.raises(StartError, match=r"No `meta.properties` found"):
            await server.serve()


async def test_a_quorum_that_is_not_there(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world:
        world.controller.is_silent = True
        await start_fails(world, "controllers have not been reached")


async def test_features_that_it_lacks_are_named_with_the_command_that_turns_them_off(
    tmp_path: Path, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with quorum_world(tmp_path) as world:
        world.controller.append(FeatureLevelRecord(name="streams.version", feature_level=1))
        world.controller.refusal_to_register = ErrorCode.UNSUPPORTED_VERSION
        await start_fails(world, "UNSUPPORTED_VERSION", initial_broker_registration_timeout_ms="5000")
    assert "kafka-features downgrade --feature streams.version=0" in caplog.text


async def test_while_the_controller_is_away_it_goes_on_serving(tmp_path: Path, autojump_clock: Clock) -> None:
    async with quorum_world(tmp_path) as world, world.running() as broker:
        world.controller.make_topic("t")
        await broker.sees("t")
        world.controller.is_silent = True
        await trio.sleep(60)
        await produce(broker, "t", b"a")
        assert await values(broker, "t") == [b"a"]
        world.controller.is_silent = False
