"""Metrics of nodes of a KRaft quorum: each moves for its cause, on brokers, on controllers, and on nodes that are both."""

from __future__ import annotations

import json
import math

import h11
import pytest
import trio
import trio.testing

from ottla.broker.metrics.families import FAMILIES
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest

from ..helpers.collected_metrics import collected
from ..helpers.controller_world import ControllerWorld, formed, until

RAFT = "kafka_server_raft_metrics_"
CONTROLLER = "kafka_controller_kafkacontroller_"
METADATA = "kafka_server_broker_metadata_metrics_"
ELECTIONS = "kafka_controller_controllerstats_"
LOADER = "kafka_server_metadataloader_"
EMITTER = "kafka_server_snapshotemitter_"
LOG = {"topic": "__cluster_metadata", "partition": "0"}
BOTH = "broker,controller"
APART = {1: "controller", 2: "controller", 3: "controller", 11: "broker", 12: "broker"}

Clock = trio.testing.MockClock


def samples(world: ControllerWorld, at: int, name: str, **labels: str) -> list[float]:
    """The values of a metric's samples with these labels at a node."""
    return [
        sample.value
        for family in collected(world.lives[at].server)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def value(world: ControllerWorld, at: int, name: str, **labels: str) -> float:
    (found,) = samples(world, at, name, **labels)
    return found


def state(world: ControllerWorld, at: int) -> str:
    """The state of the node's Raft node, by its metric."""
    (name,) = [
        sample.labels["state"]
        for family in collected(world.lives[at].server)
        for sample in family.samples
        if sample.name == RAFT + "current_state" and sample.value
    ]
    return name


async def test_the_cluster_as_each_controller_knows_it(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, APART) as world:
        active = await world.active()

        def everywhere(name: str) -> set[float]:
            return {value(world, each, name) for each in (1, 2, 3)}

        await world.create(11, "t", replicas=2, partitions=3)
        await world.create(11, "u", replicas=1, partitions=2)
        assert {each: value(world, each, CONTROLLER + "activecontrollercount") for each in (1, 2, 3)} == {
            each: each == active for each in (1, 2, 3)
        }
        for name, count in (
            ("globaltopiccount", 2),
            ("globalpartitioncount", 5),
            ("activebrokercount", 2),
            ("fencedbrokercount", 0),
            ("offlinepartitionscount", 0),
        ):
            await until(lambda name=name, count=count: everywhere(CONTROLLER + name) == {count})
        assert samples(world, active, "kafka_topic_partitions", topic="t") == [3]
        standby = next(each for each in (1, 2, 3) if each != active)
        assert samples(world, standby, "kafka_topic_partitions") == [], "or a sum over controllers counted them twice"
        await world.ask(11, DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 4)
        await until(lambda: everywhere(CONTROLLER + "globalpartitioncount") == {2})
        assert everywhere(CONTROLLER + "metadataerrorcount") == {0}


async def test_a_broker_that_dies_and_what_it_led(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, APART) as world:
        active = await world.active()
        assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=each) for each in ([12, 11], [12])]
        topics = [
            CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
            for name, assignment in zip(("both", "alone"), assignments, strict=True)
        ]
        await world.ask(11, CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        await until(lambda: {"both", "alone"} <= world.services(11).metadata.image.topics.keys())
        await until(lambda: value(world, active, CONTROLLER + "globalpartitioncount") == 2)
        await world.in_sync(11, "both", 2)
        assert value(world, active, CONTROLLER + "brokerregistrationstate", broker="12") == 30
        assert value(world, active, CONTROLLER + "timesincelastheartbeatreceivedms", broker="12") < 9000
        await world.kill(12)
        await until(lambda: value(world, active, CONTROLLER + "brokerregistrationstate", broker="12") == 10)
        assert value(world, active, CONTROLLER + "timesincelastheartbeatreceivedms", broker="12") == 9000
        assert value(world, active, CONTROLLER + "fencedbrokercount") == 1
        assert value(world, active, CONTROLLER + "activebrokercount") == 1
        assert value(world, active, CONTROLLER + "offlinepartitionscount") == 1
        assert value(world, active, CONTROLLER + "preferredreplicaimbalancecount") == 2
        assert value(world, active, ELECTIONS + "uncleanleaderelections_total") == 0
        standby = next(each for each in (1, 2, 3) if each != active)
        assert samples(world, standby, CONTROLLER + "timesincelastheartbeatreceivedms") == []


UNCLEAN = "uncleanleaderelections_total"
ELIGIBLE = "electionfromeligibleleaderreplicas_total"


@pytest.mark.parametrize(
    ("configs", "counts"),
    [
        ({"unclean.leader.election.enable": "true"}, {UNCLEAN: 1, ELIGIBLE: 0}),
        ({"min.insync.replicas": "2"}, {UNCLEAN: 0, ELIGIBLE: 1}),
    ],
    ids=["one that lacks records", "one that has all that is committed"],
)
async def test_elections_of_leaders_that_were_not_in_sync(
    configs: dict[str, str], counts: dict[str, int], autojump_clock: Clock
) -> None:
    async with formed(ControllerWorld, APART) as world:
        active = await world.active()
        wanted = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[11, 12])],
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        await world.ask(11, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        await until(lambda: "t" in world.services(11).metadata.image.topics)
        await world.in_sync(11, "t", 2)
        await world.stop(12)
        await world.in_sync(11, "t", 1)
        await world.kill(11)
        await until(lambda: value(world, active, CONTROLLER + "offlinepartitionscount") == 1)
        assert {name: value(world, active, ELECTIONS + name) for name in counts} == dict.fromkeys(counts, 0)
        world.start_soon(12)
        await until(lambda: value(world, active, CONTROLLER + "offlinepartitionscount") == 0)
        for controller in (1, 2, 3):
            await until(lambda at=controller: value(world, at, CONTROLLER + "offlinepartitionscount") == 0)
            found = {name: value(world, controller, ELECTIONS + name) for name in counts}
            assert found == counts


async def test_the_place_of_each_node_in_the_quorum(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, APART) as world:
        active = await world.active()
        followers = [each for each in (1, 2, 3) if each != active]
        assert state(world, active) == "leader"
        assert [state(world, each) for each in followers] == ["follower", "follower"]
        assert [state(world, each) for each in (11, 12)] == ["observer", "observer"]
        for each in APART:
            assert value(world, each, RAFT + "current_leader") == active
            assert value(world, each, LOADER + "currentcontrollerid") == active
            assert value(world, each, RAFT + "number_of_voters") == 3
        assert value(world, active, RAFT + "number_of_observers") == 2
        assert value(world, active, RAFT + "uncommitted_voter_change") == 0
        assert value(world, active, RAFT + "current_vote") == active
        assert samples(world, followers[0], RAFT + "number_of_observers") == []
        end = value(world, active, RAFT + "log_end_offset")
        assert value(world, active, "kafka_log_log_logendoffset", **LOG) == end
        assert value(world, active, "kafka_log_log_size", **LOG) > 0
        await until(
            lambda: value(world, active, RAFT + "high_watermark") == value(world, active, RAFT + "log_end_offset")
        )
        epoch = value(world, active, RAFT + "current_epoch")
        await world.kill(active)
        assert await world.active() != active
        assert value(world, await world.active(), RAFT + "current_epoch") > epoch


async def test_times_and_rates_of_the_log(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, APART) as world:
        active = await world.active()
        follower = next(each for each in (1, 2, 3) if each != active)
        await world.create(11, "t", replicas=2, partitions=100)
        assert value(world, active, RAFT + "append_records_rate") > 1
        assert value(world, active, RAFT + "fetch_records_rate") == 0
        await until(lambda: value(world, follower, RAFT + "fetch_records_rate") > 1)
        average, largest = (value(world, active, RAFT + f"commit_latency_{name}") for name in ("avg", "max"))
        assert 0 <= average <= largest < 1000
        assert value(world, active, RAFT + "election_latency_max") >= 0
        assert math.isnan(value(world, follower, RAFT + "commit_latency_avg"))
        await trio.sleep(120)
        assert value(world, active, RAFT + "append_records_rate") < 0.1, "an idle quorum writes nothing"
        assert math.isnan(value(world, active, RAFT + "commit_latency_avg"))
        assert math.isnan(value(world, active, RAFT + "election_latency_avg"))


async def test_operations_of_a_controller(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, {1: "controller", 11: "broker"}) as world:
        times = "kafka_controller_controllereventmanager_eventqueueprocessingtimems_count"
        before = value(world, 1, CONTROLLER + "eventqueueoperationsstartedcount"), value(world, 1, times)
        await world.create(11, "t")
        assert value(world, 1, CONTROLLER + "eventqueueoperationsstartedcount") > before[0]
        assert value(world, 1, times) > before[1]
        applied = value(world, 1, CONTROLLER + "lastappliedrecordoffset")
        await until(lambda: value(world, 1, CONTROLLER + "lastcommittedrecordoffset") == applied)
        assert value(world, 1, CONTROLLER + "lastappliedrecordtimestamp") > 0
        assert value(world, 1, CONTROLLER + "newactivecontrollerscount") == 1
        assert samples(world, 11, CONTROLLER + "lastappliedrecordoffset") == []
        assert samples(world, 1, METADATA + "last_applied_record_offset") == []
        await until(lambda: value(world, 11, METADATA + "last_applied_record_offset") == applied)


async def test_a_node_that_is_both_has_the_metrics_of_both(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, {1: BOTH}) as world:
        await world.create(1, "t", partitions=4)
        assert value(world, 1, CONTROLLER + "activecontrollercount") == 1
        assert value(world, 1, CONTROLLER + "globalpartitioncount") == 4
        assert value(world, 1, CONTROLLER + "brokerregistrationstate", broker="1") == 30
        assert value(world, 1, "kafka_server_replicamanager_partitioncount") == 4
        assert value(world, 1, METADATA + "last_applied_record_offset") > 0
        assert state(world, 1) == "leader"
        names = [family.name for family in collected(world.lives[1].server)]
        assert sorted(names) == sorted(family.name.removesuffix("_total") for family in FAMILIES), "each once"


async def test_levels_of_features(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, {1: "controller", 11: "broker"}) as world:
        for node in (1, 11):
            assert value(world, node, LOADER + "currentmetadataversion") == 30
            assert value(world, node, LOADER + "finalizedlevel", featureName="metadataVersion") == 30
            assert value(world, node, LOADER + "finalizedlevel", featureName="kraftVersion") == 1
            highest = "kafka_server_node_metrics_maximum_supported_level"
            assert value(world, node, highest, feature_name="transaction-version") == 2


async def test_static_voters_that_do_not_count(autojump_clock: Clock) -> None:
    async with formed(ControllerWorld, {1: BOTH}, is_static=True) as world:
        assert value(world, 1, CONTROLLER + "ignoredstaticvoters") == 0
    async with formed(ControllerWorld, {1: BOTH}) as world:
        await world.stop(1)
        await world.start(1, controller_quorum_voters="1@node1:9093", controller_quorum_bootstrap_servers="")
        assert value(world, 1, CONTROLLER + "ignoredstaticvoters") == 1
        assert value(world, 1, METADATA + "ignored_static_voters") == 1


async def test_snapshots_that_are_made_and_loaded(autojump_clock: Clock) -> None:
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, {1: BOTH})
        world.format()
        await world.start(metadata_log_max_record_bytes_between_snapshots="2000")
        assert value(world, 1, EMITTER + "latestsnapshotgeneratedbytes") == 0
        await trio.sleep(100)
        assert value(world, 1, EMITTER + "latestsnapshotgeneratedagems") >= 100_000, "since its start"
        await world.create(1, "t", partitions=100)
        await until(lambda: value(world, 1, EMITTER + "latestsnapshotgeneratedbytes") > 1000)
        assert value(world, 1, EMITTER + "latestsnapshotgeneratedagems") < 10_000
        assert value(world, 1, LOADER + "handleloadsnapshotcount") == 0
        await world.stop(1)
        await world.start()
        assert value(world, 1, LOADER + "handleloadsnapshotcount") == 1
        assert value(world, 1, CONTROLLER + "globalpartitioncount") == 100
        nursery.cancel_scope.cancel()


async def get(world: ControllerWorld, target: str) -> tuple[int, bytes]:
    """A page of the node's metrics side."""
    stream = await world.network.connect("node1", 9464)
    protocol = h11.Connection(h11.CLIENT)
    request = h11.Request(method="GET", target=target, headers=[("Host", "node1:9464"), ("Connection", "close")])
    await stream.send([(protocol.send(request) or b"") + (protocol.send(h11.EndOfMessage()) or b"")])
    status, body = 0, b""
    with trio.fail_after(60):
        while not isinstance(event := protocol.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            if event is h11.NEED_DATA:
                protocol.receive_data(await stream.receive())
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
    stream.close()
    return status, body


@pytest.mark.parametrize("roles", ["controller", BOTH])
async def test_a_scrape_and_the_health_of_a_controller(roles: str, autojump_clock: Clock) -> None:
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, {1: roles, 11: "broker"})
        world.format()
        await world.start(1, metrics_listener="node1:9464")
        await world.start(11)
        status, body = await get(world, "/metrics")
        assert status == 200
        assert b"kafka_controller_kafkacontroller_activecontrollercount 1.0" in body
        assert b'kafka_network_requestmetrics_requests_total{request="BrokerRegistration",version="4"}' in body
        assert b'kafka_server_socket_server_metrics_connection_count{listener="CONTROLLER"}' in body
        assert (b"kafka_server_replicamanager" in body) == (roles == BOTH), "which a controller alone has not"
        assert (await get(world, "/healthz"))[0] == 200
        status, body = await get(world, "/readyz")
        assert (status, json.loads(body)["status"]) == (200, "ready")
        nursery.cancel_scope.cancel()


async def test_a_controller_is_ready_before_its_quorum_has_a_leader(autojump_clock: Clock) -> None:
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, {1: "controller", 2: "controller", 3: "controller"})
        world.format()
        await world.start(1, metrics_listener="node1:9464")
        await trio.sleep(5)
        assert value(world, 1, RAFT + "current_leader") == -1
        status, body = await get(world, "/readyz")
        assert status == 200, "or whoever waits for it would not start the others"
        assert json.loads(body)["checks"] == {"metadata_log_opened": True, "listeners_open": True}
        nursery.cancel_scope.cancel()
