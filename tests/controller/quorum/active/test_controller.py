"""An active controller from its claim to the end of its leadership, and the standby that it is before and after."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.context import ActiveSettings, OperationContext
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.periodic import PeriodicTask
from ottla.controller.quorum.active.result import MAX_RECORDS, ControllerResult
from ottla.controller.quorum.metadata_version import ELR, FEATURE
from ottla.controller.quorum.registrations import ReplayError
from ottla.metadata.types import LogPosition
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.metadata_log_records import BeginTransactionRecord, NoOpRecord
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.messages.topic_records import PartitionChangeRecord
from ottla.wire.metadata_records import VersionedRecord
from ottla.wire.schema import Message

from ..helpers.images import contents
from .helpers.world import CLUSTER, MemoryLog, World

SETTINGS = ActiveSettings(node_id=1, cluster_id=CLUSTER)


def bootstrap(level: int, *, elr: int = 0, configs: int = 0) -> list[VersionedRecord]:
    records: list[VersionedRecord] = [(FeatureLevelRecord(name=FEATURE, feature_level=level), 0)]
    if elr:
        records.append((FeatureLevelRecord(name=ELR, feature_level=elr), 0))
    return records + [(config(number), 0) for number in range(configs)]


def config(number: int, value: str = "v") -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name=f"name-{number}", value=value)


def controller(
    log: MemoryLog, records: list[VersionedRecord] | None = None, tasks: tuple[PeriodicTask, ...] = ()
) -> ActiveController:
    return ActiveController(SETTINGS, log, records or bootstrap(30), random.Random(1), tasks)


def follow(standby: ActiveController, log: MemoryLog, *, up_to: int | None = None) -> None:
    """A standby applies the batches of a log, or those that end before an offset."""
    end = 0
    for batch in log.batches:
        end += len(batch)
        if up_to is None or end <= up_to:
            standby.apply_committed([record for record, _ in batch], LogPosition(end - 1, 1, 0))


def config_names(state: Any) -> set[str]:
    return {name for configs in state.image.configs.values() for name in configs}


def write(*records: Message, atomic: bool = True) -> Any:
    return lambda context: ControllerResult([(record, 0) for record in records], "done", is_atomic=atomic)


# --- activation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (bootstrap(12), ["FeatureLevel"]),
        (bootstrap(13), ["BeginTransaction", "FeatureLevel", "EndTransaction"]),
        (bootstrap(30, elr=1), ["BeginTransaction", "FeatureLevel", "FeatureLevel", "Config", "EndTransaction"]),
    ],
    ids=["without transactions", "with transactions", "with ELR"],
)
def test_an_empty_log_gets_what_formatting_left(records: list[VersionedRecord], expected: list[str]) -> None:
    log = MemoryLog()
    active = controller(log, records)
    active.claim(1, 0)
    assert [[type(record).__name__.removesuffix("Record") for record, _ in batch] for batch in log.batches] == [
        expected
    ]
    features = active.state.image.features
    assert features is not None and features.levels[FEATURE] == records[0][0].feature_level  # type: ignore[attr-defined]


def test_a_value_that_the_cluster_begins_with_stays() -> None:
    """With ELR the ISR is compared with ``min.insync.replicas``; the default stands in only where nothing is said."""
    log = MemoryLog()
    given = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    active = controller(log, [*bootstrap(30, elr=1), (given, 0)])
    active.claim(1, 0)
    assert [value for configs in active.state.image.configs.values() for value in configs.values()] == ["2"]


def test_a_log_that_has_records_gets_none() -> None:
    log = MemoryLog()
    first = controller(log)
    first.claim(1, 0)
    second = controller(log)
    follow(second, log)
    second.claim(2, 0)
    assert len(log.batches) == 1
    assert second.tick(10**6) is not None
    assert len(log.batches) == 1, "who has nothing to do writes nothing"


def test_a_large_bootstrap_is_several_batches_and_one_transaction() -> None:
    log = MemoryLog()
    active = controller(log, bootstrap(30, configs=MAX_RECORDS + 10))
    active.claim(1, 0)
    assert [len(batch) for batch in log.batches] == [MAX_RECORDS, 13]
    standby = controller(log)
    follow(standby, log, up_to=MAX_RECORDS)
    assert standby.state.image.features is None and not config_names(standby.state), (
        "nothing of it is there before its end"
    )
    follow(standby, MemoryLogTail(log, 1))
    assert len(config_names(standby.state)) == MAX_RECORDS + 10


class MemoryLogTail(MemoryLog):
    """The batches of a log from one on."""

    def __init__(self, log: MemoryLog, first: int) -> None:
        super().__init__()
        self.batches = log.batches[first:]


def test_a_transaction_that_was_left_open_is_aborted() -> None:
    log = MemoryLog()
    controller(log, bootstrap(30, configs=MAX_RECORDS + 10)).claim(1, 0)
    cut = MemoryLog(MAX_RECORDS)
    cut.batches = log.batches[:1]
    standby = controller(cut, bootstrap(30, configs=1))
    follow(standby, cut)
    standby.claim(2, 0)
    assert [type(record).__name__.removesuffix("Record") for record, _ in cut.batches[1]] == [
        "AbortTransaction",
        "BeginTransaction",
        "FeatureLevel",
        "Config",
        "EndTransaction",
    ]
    assert config_names(standby.state) == {"name-0"}


def test_an_open_transaction_in_a_log_with_records_is_aborted() -> None:
    log = MemoryLog()
    controller(log).claim(1, 0)
    standby = controller(log)
    follow(standby, log)
    standby.apply_committed([BeginTransactionRecord(name="x"), config(1)], LogPosition(log.next_offset + 1, 1, 0))
    standby.claim(2, 0)
    assert [type(record).__name__ for record, _ in log.batches[-1]] == ["AbortTransactionRecord"]
    assert not config_names(standby.state)


# --- waiting for the commit -------------------------------------------------------------------------------------------


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def active(log: MemoryLog) -> ActiveController:
    made = controller(log)
    made.claim(1, 0)
    made.committed(log.next_offset - 1)
    return made


def test_a_response_waits_for_the_commit_of_its_records(log: MemoryLog, active: ActiveController) -> None:
    responses: list[object] = []
    active.run(write(config(1)), responses.append)
    active.run(write(config(2)), responses.append)
    assert config_names(active.state) == {"name-1", "name-2"}, "the next operation sees them at once"
    active.committed(log.next_offset - 2)
    assert responses == ["done"]
    active.committed(log.next_offset - 1)
    assert responses == ["done"] * 2


def test_a_response_without_records_waits_for_what_it_has_seen(log: MemoryLog, active: ActiveController) -> None:
    responses: list[object] = []
    active.run(write(), responses.append)
    assert responses == ["done"], "nothing is uncommitted"
    active.run(write(config(1)), lambda response: None)
    active.run(write(), responses.append)
    assert responses == ["done"]
    active.committed(log.next_offset - 1)
    assert responses == ["done"] * 2


def test_an_error_waits_for_nothing(active: ActiveController) -> None:
    def refuse(context: OperationContext) -> ControllerResult[None]:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    responses: list[object] = []
    active.run(write(config(1)), responses.append)
    active.run(refuse, responses.append)
    (error,) = responses
    assert isinstance(error, KafkaError) and error.code is ErrorCode.INVALID_REQUEST
    assert active.is_active


# --- the end of the leadership ----------------------------------------------------------------------------------------


def test_all_who_wait_are_told_and_the_state_is_the_committed_one(log: MemoryLog, active: ActiveController) -> None:
    responses: list[object] = []
    active.run(write(config(1)), responses.append)
    active.committed(log.next_offset - 1)
    active.run(write(config(2)), responses.append)
    active.run(write(), responses.append)
    active.leader_id = 3
    active.renounce()
    assert responses[0] == "done"
    assert [(error.code, error.message) for error in responses[1:] if isinstance(error, KafkaError)] == [
        (ErrorCode.NOT_CONTROLLER, "The active controller appears to be node 3.")
    ] * 2
    assert config_names(active.state) == {"name-1"}
    assert active.tick(10**9) is None
    active.run(write(config(3)), responses.append)
    assert isinstance(responses[-1], KafkaError) and responses[-1].code is ErrorCode.NOT_CONTROLLER


def test_what_was_not_committed_may_still_be(log: MemoryLog, active: ActiveController) -> None:
    active.run(write(config(1)), lambda response: None)
    active.run(write(config(2)), lambda response: None)
    active.renounce()
    active.apply_committed([config(1)], LogPosition(log.next_offset - 2, 1, 0))
    assert config_names(active.state) == {"name-1"}
    active.claim(3, 0)
    active.run(write(config(4)), lambda response: None)
    assert config_names(active.state) == {"name-1", "name-4"}


def test_a_log_that_is_led_by_another_ends_the_leadership(log: MemoryLog, active: ActiveController) -> None:
    responses: list[object] = []
    active.run(write(config(1)), responses.append)
    log.leads = False
    active.run(write(config(2)), responses.append)
    assert [error.code for error in responses if isinstance(error, KafkaError)] == [ErrorCode.NOT_CONTROLLER] * 2
    assert not active.is_active
    assert config_names(active.state) == set()


def test_a_record_that_cannot_be_applied_never_comes_into_the_log(log: MemoryLog, active: ActiveController) -> None:
    responses: list[object] = []
    active.run(write(config(1)), responses.append)
    batches = len(log.batches)
    with pytest.raises(ReplayError):
        active.run(write(config(2), PartitionChangeRecord(topic_id=b"u" * 16)), responses.append)
    assert len(log.batches) == batches
    assert [error.code for error in responses if isinstance(error, KafkaError)] == [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_CONTROLLER,
    ]
    assert not active.is_active


def test_a_claim_begins_with_whole_sessions() -> None:
    world = World()
    world.start(1, 2)
    world.register(3)
    world.now_ms = 8_000
    standby = ActiveController(world.settings, world.log, [], random.Random(1))
    follow(standby, world.log)
    assert contents(standby.state.image) | {"position": None} == contents(world.image) | {"position": None}
    standby.claim(2, 8_000)
    batches = len(world.log.batches)
    standby.tick(17_000)
    assert len(world.log.batches) == batches
    standby.tick(17_001)
    assert [batch[-1][0].broker_id for batch in world.log.batches[batches:]] == [1, 2]  # type: ignore[attr-defined]


def test_a_standby_answers_no_heartbeat(log: MemoryLog) -> None:
    responses: list[object] = []
    controller(log).heartbeat(BrokerHeartbeatRequest(broker_id=1), 0, responses.append)
    (error,) = responses
    assert isinstance(error, KafkaError)
    assert (error.code, error.message) == (ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")


def test_a_snapshot_makes_the_same_state() -> None:
    world = World()
    world.start(1, 2)
    world.topic("a.b", (1, 2), (2, 1))
    world.heartbeat(2, want_fence=True)
    loaded = controller(MemoryLog())
    loaded.load(world.image)
    known = world.controller.state
    assert {broker: set(keys) for broker, keys in loaded.state.index.isr_members.items() if keys} == {
        broker: set(keys) for broker, keys in known.index.isr_members.items() if keys
    }
    assert set(loaded.state.index.not_preferred) == set(known.index.not_preferred) != set()
    assert dict(loaded.state.index.similar_names) == {"a_b": ("a.b",)}


# --- batches ----------------------------------------------------------------------------------------------------------


LARGE: list[Message] = [config(number, "v" * 32_000) for number in range(300)]


def test_what_need_not_stand_together_is_split(log: MemoryLog, active: ActiveController) -> None:
    seen = len(log.batches)
    active.run(write(*map(config, range(MAX_RECORDS + 1)), atomic=False), lambda response: None)
    assert [len(batch) for batch in log.batches[seen:]] == [MAX_RECORDS, 1]
    active.run(write(*LARGE, atomic=False), lambda response: None)
    assert [len(batch) for batch in log.batches[seen + 2 :]] == [261, 39], "8 MiB in a batch"


@pytest.mark.parametrize("records", [list(map(config, range(MAX_RECORDS + 1))), LARGE], ids=["records", "bytes"])
def test_what_must_stand_together_and_cannot_is_refused(
    log: MemoryLog, active: ActiveController, records: list[Message]
) -> None:
    seen = len(log.batches)
    responses: list[object] = []
    active.run(write(*records), responses.append)
    (error,) = responses
    assert isinstance(error, KafkaError) and error.code is ErrorCode.POLICY_VIOLATION
    assert len(log.batches) == seen and active.is_active


def test_a_split_operation_is_undone_in_part(log: MemoryLog, active: ActiveController) -> None:
    responses: list[object] = []
    active.run(write(*map(config, range(MAX_RECORDS + 1)), atomic=False), responses.append)
    active.committed(log.next_offset - 2)
    active.renounce()
    assert len(config_names(active.state)) == MAX_RECORDS, "the first batch is committed"
    assert isinstance(responses[0], KafkaError)


def test_a_task_of_others_comes_round() -> None:
    turns: list[int] = []

    def work(context: OperationContext) -> ControllerResult[bool]:
        turns.append(len(turns))
        return ControllerResult([(NoOpRecord(), 0)], len(turns) < 3)

    log = MemoryLog()
    active = controller(log, tasks=(PeriodicTask("mine", work, 1_000),))
    active.claim(1, 0)
    assert active.tick(999) == 1_000
    assert active.tick(1_000) == 1_010
    assert active.tick(1_010) == 1_020
    assert active.tick(1_020) == 2_020
    assert turns == [0, 1, 2]


def calls_of(world: World, topic: str) -> int:
    """The Python functions that a change of one partition calls."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        world.propose(topic, 1)
    finally:
        sys.setprofile(None)
    return calls


def test_a_change_costs_the_same_however_much_there_is() -> None:
    counts = []
    for topics in (1, 200):
        world = World()
        world.start(1, 2, 3)
        for number in range(topics):
            world.topic(f"t{number}", *[(1, 2)] * 5)
        world.propose("t0", 1, number=1)  # what is compiled on its first use
        others = {name: topic for name, topic in world.image.topics.items() if name != "t0"}
        counts.append(calls_of(world, "t0"))
        assert all(world.image.topics[name] is topic for name, topic in others.items()), "unchanged topics are shared"
    assert counts[0] == counts[1]
