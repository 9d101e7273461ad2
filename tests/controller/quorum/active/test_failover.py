"""Controllers that take turns on one log: whatever was not committed may be cut off, and nobody notices.

After each step the active controller's state is the replay of the log, and that of each standby the replay of what it was told
to be committed. A change that was responded to stays.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.context import ActiveSettings
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.active.state import ControllerState
from ottla.controller.quorum.active.topics import TopicCreation, create_topics
from ottla.controller.quorum.metadata_version import FEATURE
from ottla.metadata.types import LogPosition
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.metadata_records import decode_metadata_record
from ottla.wire.schema import Message

from .helpers.world import (
    CLUSTER,
    anything,
    counted_topic,
    directory,
    incarnation,
    plain_config_records,
    plain_descriptions,
)
from .test_walk import index_of, plain

NODES = 3


class SharedLog:
    """The log of a quorum: its leader appends, and what is not committed may be cut off."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[Message]]] = []
        """Each with the offset behind its last record."""
        self.committed = 0
        """How many batches are."""
        self.leader = 0
        self.epoch = 1

    @property
    def end(self) -> int:
        return self.batches[-1][0] if self.batches else 0

    def state(self, batches: int | None = None) -> ControllerState:
        state = ControllerState()
        for end, records in self.batches[:batches]:
            state = state.apply(records, LogPosition(end - 1, 1, 0))
        return state


class NodeLog:
    """The log as the controller of one node writes it."""

    def __init__(self, log: SharedLog, node: int) -> None:
        self._log = log
        self._node = node

    @property
    def next_offset(self) -> int:
        return self._log.end

    def append(self, epoch: int, values: Sequence[bytes]) -> int:
        if (self._log.leader, self._log.epoch) != (self._node, epoch):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another node leads")
        records = [decode_metadata_record(value)[0] for value in values]
        self._log.batches.append((self._log.end + len(records), records))
        return self._log.end - 1


class Quorum:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log = SharedLog()
        bootstrap = [(FeatureLevelRecord(name=FEATURE, feature_level=30), 0)]
        self.nodes = [
            ActiveController(
                ActiveSettings(node_id=node, cluster_id=CLUSTER), NodeLog(self.log, node), bootstrap, self.random
            )
            for node in range(NODES)
        ]
        self.applied = [0] * NODES
        """How many batches each node was told to be committed."""
        self.responses: dict[int, object] = {}
        """By operation."""
        self.written: set[int] = set()
        """The operations that have set a config, whose name has their number."""
        self.lost = 0
        self.nodes[0].claim(1, 0)

    @property
    def active(self) -> ActiveController:
        return self.nodes[self.log.leader]

    def step(self, number: int) -> None:
        self.random.choice([self.write, self.write, self.create, self.beat, self.commit, self.commit, self.fail_over])(
            number
        )
        self.check()

    def write(self, number: int) -> None:
        config = ConfigRecord(resource_type=4, resource_name="", name=f"n{number}", value="v")
        records = [(config, 0)] * self.random.randint(0, 2)
        if records:
            self.written.add(number)
        self.active.run(lambda context: ControllerResult(records, number), self._noted(number))

    def create(self, number: int) -> None:
        creation = TopicCreation(
            plain_config_records,
            plain_descriptions,
            anything,
            anything,
            lambda partitions: None,
            lambda: self.random.randbytes(16),
            self.random,
        )
        request = CreateTopicsRequest(topics=[counted_topic(f"t.{number}", 2, 1)])
        self.active.run(lambda context: create_topics(context, request, creation), self._noted(number))

    def beat(self, number: int) -> None:
        broker_id = self.random.randint(1, 3)
        known = self.active.state.image.quorum_brokers.get(broker_id)
        if known is None:
            request = BrokerRegistrationRequest(
                broker_id=broker_id,
                cluster_id=CLUSTER,
                incarnation_id=incarnation(broker_id),
                features=[Feature(name=FEATURE, min_supported_version=7, max_supported_version=30)],
                log_dirs=[directory(broker_id)],
            )
            self.active.register(request, 4, 0, number, self._noted(number))
        else:
            beat = BrokerHeartbeatRequest(
                broker_id=broker_id, broker_epoch=known.epoch, current_metadata_offset=self.log.end - 1
            )
            self.active.heartbeat(beat, number, self._noted(number))

    def _noted(self, number: int) -> Any:
        def note(response: object) -> None:
            assert number not in self.responses, "each operation responds once"
            self.responses[number] = response

        return note

    def commit(self, number: int) -> None:
        """More batches are committed. The active controller hears of it, and some standbys."""
        self.log.committed = self.random.randint(self.log.committed, len(self.log.batches))
        for node in range(NODES):
            if node == self.log.leader or self.random.random() < 0.7:
                self._tell(node)

    def _tell(self, node: int) -> None:
        for end, records in self.log.batches[self.applied[node] : self.log.committed]:
            self.nodes[node].apply_committed(records, LogPosition(end - 1, 1, 0))
        self.applied[node] = self.log.committed

    def fail_over(self, number: int) -> None:
        """The next leader has everything committed, and perhaps more, which then is committed."""
        before = self.active
        self.log.leader, self.log.epoch = self.random.randrange(NODES), number + 2
        if self.random.random() < 0.5:  # the one before does not know, and writes on
            config = ConfigRecord(resource_type=4, resource_name="", name="too-late", value="v")
            before.run(lambda context: ControllerResult([(config, 0)], number), self._noted(number))
        else:
            before.renounce()
        kept = self.random.randint(self.log.committed, len(self.log.batches))
        self.lost += len(self.log.batches) - kept
        del self.log.batches[kept:]
        self.log.committed = kept
        self._tell(self.log.leader)
        self.active.claim(self.log.epoch, number)

    def check(self) -> None:
        for node, controller in enumerate(self.nodes):
            assert controller.is_active is (node == self.log.leader)
            expected = self.log.state(None if controller.is_active else self.applied[node])
            assert plain(controller.state.image) == plain(expected.image)
            assert index_of(controller.state.index) == index_of(expected.index)
            assert controller.state.registration_offsets == expected.registration_offsets


@pytest.mark.parametrize("seed", range(10))
def test_controllers_take_turns(seed: int) -> None:
    quorum = Quorum(seed)
    for number in range(120):
        quorum.step(number)
    assert quorum.lost, "something was cut off"
    quorum.log.committed = len(quorum.log.batches)
    for node in range(NODES):
        quorum._tell(node)
    names = {name for configs in quorum.active.state.image.configs.values() for name in configs}
    done = {number for number, response in quorum.responses.items() if response == number}
    assert done and {f"n{number}" for number in done & quorum.written} <= names
    images = [plain(node.state.image) for node in quorum.nodes]
    assert images[0] == images[1] == images[2]
