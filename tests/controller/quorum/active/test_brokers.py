"""Which registrations are accepted, and what they write: the cases of Kafka's ClusterControlManagerTest, and more."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.brokers import register_controller, unregister_broker
from ottla.controller.quorum.active.context import OperationContext
from ottla.metadata.types import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from ottla.wire.messages.broker_registration import Feature, Listener
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.controller_registration import Listener as ControllerListener

from .helpers.world import World, directory


def feature(name: str, lowest: int, highest: int) -> Feature:
    return Feature(name=name, min_supported_version=lowest, max_supported_version=highest)


def unsupported(level: int, name: str, lowest: int, highest: int) -> str:
    return (
        f"Unable to register because the broker does not support finalized version {level} of {name}. "
        f"The broker wants a version between {lowest} and {highest}, inclusive."
    )


METADATA = feature("metadata.version", 7, 30)
KRAFT = feature("kraft.version", 0, 1)
ELR = feature("eligible.leader.replicas.version", 0, 1)

REFUSED: dict[str, tuple[dict[str, Any], ErrorCode, str]] = {
    "another cluster": (
        {"cluster_id": "another"},
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        "Expected cluster ID cluster-of-the-tests, but got cluster ID another",
    ),
    "a broker of a ZooKeeper": (
        {"is_migrating_zk_broker": True},
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Controller does not support registering ZK brokers.",
    ),
    "no directory": ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
    "a reserved directory": (
        {"log_dirs": [directory(1), UNASSIGNED_DIRECTORY]},
        ErrorCode.INVALID_REGISTRATION,
        "Reserved directory ID in request",
    ),
    "a directory twice": (
        {"log_dirs": [directory(1), directory(1)]},
        ErrorCode.INVALID_REGISTRATION,
        "Duplicate directory ID in request",
    ),
    "the directory of another": (
        {"log_dirs": [directory(1), directory(0)]},
        ErrorCode.INVALID_REGISTRATION,
        "Broker 0 is already registered with directory ZGlyZWN0b3J5LTAwMC0wMA",
    ),
    "a listener without a known protocol": (
        {"listeners": [Listener(name="A", host="a", port=1, security_protocol=77)]},
        ErrorCode.INVALID_REGISTRATION,
        "There is no security protocol with the number 77",
    ),
    "metadata.version is too new": (
        {"features": [feature("metadata.version", 7, 29), KRAFT, ELR]},
        ErrorCode.UNSUPPORTED_VERSION,
        unsupported(30, "metadata.version", 7, 29),
    ),
    "no metadata.version": (
        {"features": [KRAFT, ELR]},
        ErrorCode.INVALID_REGISTRATION,
        "Request features do not contain 'metadata.version'",
    ),
    "a finalized feature is not named": (
        {"features": [METADATA, KRAFT]},
        ErrorCode.UNSUPPORTED_VERSION,
        unsupported(1, "eligible.leader.replicas.version", 0, 0),
    ),
    "kraft.version is not named": (
        {"features": [METADATA, ELR]},
        ErrorCode.UNSUPPORTED_VERSION,
        unsupported(1, "kraft.version", 0, 0),
    ),
    "kraft.version is too new": (
        {"features": [METADATA, ELR, feature("kraft.version", 0, 0)]},
        ErrorCode.UNSUPPORTED_VERSION,
        unsupported(1, "kraft.version", 0, 0),
    ),
    "a feature that is off must be supported at 0": (
        {"features": [METADATA, KRAFT, ELR, feature("new.version", 1, 2)]},
        ErrorCode.UNSUPPORTED_VERSION,
        unsupported(0, "new.version", 1, 2),
    ),
}


@pytest.mark.parametrize(("fields", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_a_registration_that_is_refused(fields: dict[str, Any], code: ErrorCode, message: str) -> None:
    world = World()
    world.register(0)
    world.taken()
    with pytest.raises(KafkaError) as refused:
        world.register(1, **fields)
    assert (refused.value.code, refused.value.message) == (code, message)
    assert world.taken() == []


def test_an_unknown_feature_is_kept() -> None:
    world = World()
    world.register(1, features=[METADATA, KRAFT, ELR, feature("new.version", 0, 2)])
    assert world.broker(1).features["new.version"] == (0, 2)


@pytest.mark.parametrize(
    ("release", "version", "has_directories"),
    [("3.3-IV3", 1, False), ("3.4-IV0", 2, False), ("3.7-IV2", 3, True), ("4.3-IV0", 4, True)],
)
def test_the_version_of_the_record(release: str, version: int, has_directories: bool) -> None:
    world = World(release, has_elr=False)
    world.register(0, log_dirs=[directory(0)] if has_directories else [])
    ((record,),) = world.taken()
    assert (record["is"], record["v"]) == ("RegisterBroker", version)
    assert record.get("log_dirs", []) == ([directory(0)] if has_directories else [])


def test_the_same_process_keeps_its_epoch_and_its_state() -> None:
    world = World()
    world.start(1)
    epoch = world.broker(1).epoch
    assert world.register(1) == epoch
    assert not world.broker(1).is_fenced
    assert world.controller.state.registration_offsets[1] == world.log.next_offset - 1 > epoch


def test_another_process_waits_for_the_session_of_the_one_before() -> None:
    world = World()
    world.start(1)
    epoch = world.broker(1).epoch
    with pytest.raises(KafkaError) as refused:
        world.register(1, life=2)
    assert refused.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.pass_time(world.settings.session_timeout_ms)
    with pytest.raises(KafkaError):
        world.register(1, life=2)
    world.pass_time(1)
    assert world.register(1, life=2) > epoch
    assert world.broker(1).is_fenced


def test_another_process_does_not_wait_for_one_that_was_let_go() -> None:
    world = World()
    world.start(1)
    epoch = world.broker(1).epoch
    assert world.heartbeat(1, want_shut_down=True).should_shut_down
    assert world.heartbeat(1, want_shut_down=True).should_shut_down, "it asks again, since no response has reached it"
    assert world.register(1, life=2, previous_broker_epoch=epoch) > epoch
    end = world.log.next_offset
    world.pass_time(world.settings.session_timeout_ms + 1)
    assert world.log.next_offset == end, "no session is left that could end"


def test_a_broker_that_is_known_to_be_alive_stays_without_a_heartbeat() -> None:
    world = World()
    world.start(1, 2)
    world.controller.known_alive = lambda: [1, 3]
    world.pass_time(world.settings.session_timeout_ms + 1)
    assert (world.broker(1).is_fenced, world.broker(2).is_fenced) == (False, True)
    world.controller.known_alive = lambda: [2]
    world.pass_time(world.settings.session_timeout_ms + 1)
    assert (world.broker(1).is_fenced, world.broker(2).is_fenced) == (True, True), (
        "who is fenced asks to come back itself"
    )


@pytest.mark.parametrize(
    ("version", "is_told", "elr"), [(4, True, (1,)), (3, True, (1,)), (2, True, ()), (4, False, ())]
)
def test_an_unclean_shutdown_costs_the_place_in_the_elr(version: int, is_told: bool, elr: tuple[int, ...]) -> None:
    world = World(min_insync_replicas=2)
    world.start(0, 1)
    world.topic("t", (0, 1))
    world.kill(1)
    assert world.partition("t").elr == (1,)
    known = world.broker(1).epoch
    world.register(1, life=2, version=version, previous_broker_epoch=known if is_told else -1)
    assert world.partition("t").elr == elr


def test_the_epoch_is_the_offset_of_the_first_record_of_the_registration() -> None:
    world = World(has_elr=False)
    world.start(1, 2)
    world.topic("t", (1, 2))
    world.pass_time(0)
    world.now_ms += world.settings.session_timeout_ms + 1
    first = world.log.next_offset
    world.taken()
    assert world.register(2, life=2) == first
    assert [record["is"] for record in world.taken()[0]] == ["PartitionChange", "RegisterBroker"]
    assert world.controller.state.registration_offsets[2] == first + 1


def test_directories_of_brokers() -> None:
    world = World("3.7-IV2", has_elr=False)
    world.register(1)
    world.register(2, directories=2)
    context = OperationContext(world.controller.state, world.settings)
    assert context.default_directory(1) == directory(1)
    assert context.default_directory(2) == UNASSIGNED_DIRECTORY, "the broker chooses"
    assert context.default_directory(4) == UNASSIGNED_DIRECTORY, "it is not registered"
    assert context.has_online_directory(2, directory(2, 1))
    assert context.has_online_directory(2, UNASSIGNED_DIRECTORY)
    assert context.has_online_directory(2, MIGRATING_DIRECTORY)
    assert not context.has_online_directory(2, LOST_DIRECTORY)
    assert not context.has_online_directory(2, directory(1))
    assert not context.has_online_directory(77, UNASSIGNED_DIRECTORY)
    old = World("3.6-IV2", has_elr=False)
    old.register(1, log_dirs=[])
    context = OperationContext(old.controller.state, old.settings)
    assert context.default_directory(1) == MIGRATING_DIRECTORY
    assert context.has_online_directory(1, directory(1)), "it has told of none"
    assert not context.has_online_directory(1, LOST_DIRECTORY)


def test_a_broker_whose_directories_are_all_cordoned_gets_no_replicas() -> None:
    world = World()
    world.start(1, 2, directories=2)
    world.heartbeat(1, cordoned_log_dirs=[directory(1, 0), directory(1, 1)])
    world.heartbeat(2, cordoned_log_dirs=[directory(2, 0)])
    world.taken()
    world.heartbeat(1, cordoned_log_dirs=[directory(1, 1), directory(1, 0)])
    assert world.taken() == [], "the order tells nothing"
    context = OperationContext(world.controller.state, world.settings)
    assert [broker.broker_id for broker in context.usable_brokers()] == [2]


def test_a_broker_is_unregistered() -> None:
    world = World(min_insync_replicas=2)
    world.start(1, 2, 3)
    world.topic("t", (1, 2, 3))
    world.kill(2)
    world.kill(2, 3)
    assert world.partition("t").elr == (3,)
    world.taken()
    world.do(lambda context: unregister_broker(context, 1))
    changed, gone = world.taken()[0]
    assert (changed["isr"], changed["eligible_leader_replicas"], changed["leader"]) == ([], [1, 3], -1)
    assert (gone["is"], gone["broker_id"], gone["v"]) == ("UnregisterBroker", 1, 0)
    assert 1 not in world.image.quorum_brokers
    assert 1 not in world.controller.state.registration_offsets
    with pytest.raises(KafkaError) as refused:
        world.do(lambda context: unregister_broker(context, 1))
    assert (refused.value.code, refused.value.message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 1 is not currently registered",
    )


def test_a_controller_registers() -> None:
    world = World("3.7-IV0", has_elr=False)
    request = ControllerRegistrationRequest(
        controller_id=3,
        incarnation_id=b"c" * 16,
        zk_migration_ready=True,
        listeners=[ControllerListener(name="CONTROLLER", host="c", port=9093, security_protocol=0)],
    )
    world.do(lambda context: register_controller(context, request))
    ((record,),) = world.taken()
    assert (record["is"], record["v"], record["controller_id"], "zk_migration_ready" in record) == (
        "RegisterController",
        0,
        3,
        False,
    )
    old = World("3.6-IV2", has_elr=False)
    with pytest.raises(KafkaError) as refused:
        old.do(lambda context: register_controller(context, request))
    assert refused.value.message == "The current MetadataVersion is too old to support controller registrations."
