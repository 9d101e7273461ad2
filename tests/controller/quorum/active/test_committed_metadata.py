"""What follows a controller's committed metadata is told of everything once, and then of each change, on every node."""

from __future__ import annotations

import random

from ottla.controller.quorum.active.context import ActiveSettings
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.result import ControllerResult
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition
from ottla.security.entities import TOPICS, Entity
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.schema import Message

from .helpers.world import CLUSTER, MemoryLog

Configs = dict[str, dict[str, str]]


def record(topic: str, value: str | None) -> Message:
    return ConfigRecord(resource_type=2, resource_name=topic, name="n", value=value)


class Node:
    """A controller; ``told`` are the configs of topics in each delta, and ``known`` is what they sum up to."""

    def __init__(self) -> None:
        self.log = MemoryLog(2)
        self.controller = ActiveController(ActiveSettings(1, CLUSTER), self.log, [], random.Random(1))
        self.told: list[Configs] = []
        self.known: Configs = {}
        self.controller.metadata.publishers.append(self._take)

    def _take(self, delta: ClusterDelta, image: ClusterImage) -> None:
        changed = {str(entity.name): dict(values) for entity, values in delta.configs.items()}
        self.told.append(changed)
        self.known = {topic: values for topic, values in {**self.known, **changed}.items() if values}
        assert self.known == {str(entity.name): dict(values) for entity, values in image.configs.items()}
        assert self.controller.metadata.image is image

    def commit(self, offset: int, *records: Message) -> None:
        """Of a standby."""
        self.controller.apply_committed(records, LogPosition(offset, 1, 0))

    def write(self, *records: Message) -> None:
        """Of the active controller; not committed yet."""
        self.controller.run(lambda context: ControllerResult([(each, 0) for each in records], None), lambda _: None)


def test_nothing_is_told_before_the_node_has_caught_up() -> None:
    node = Node()
    node.controller.caught_up()  # with a log that has nothing in it
    assert not node.controller.metadata.is_loaded
    node.commit(0, record("a", "1"))
    node.commit(1, record("b", "2"))
    assert node.told == []
    node.controller.caught_up()
    assert node.told == [{"a": {"n": "1"}, "b": {"n": "2"}}]
    node.commit(2, record("a", None))
    node.controller.caught_up()
    assert node.told[1:] == [{"a": {}}]


def test_a_snapshot_tells_what_it_changes() -> None:
    node, other = Node(), Node()
    node.commit(
        0,
        record("a", "1"),
    )
    node.controller.caught_up()
    for each in (record("a", None), record("b", "2"), record("c", "3")):
        other.commit(1, each)
    node.controller.load(other.controller.committed_state.image)
    assert node.told[1:] == [{"a": {}, "b": {"n": "2"}, "c": {"n": "3"}}]
    unloaded = Node()
    unloaded.controller.load(other.controller.committed_state.image)
    assert unloaded.told == []


def test_an_active_controller_tells_what_is_committed() -> None:
    """And what is undone, because another node leads, nobody was told of."""
    node = Node()
    node.commit(1, FeatureLevelRecord(name="metadata.version", feature_level=30), record("a", "1"))
    node.controller.caught_up()
    node.controller.claim(1, 0)
    node.controller.committed(node.log.next_offset - 1)
    node.told.clear()
    node.write(record("b", "2"))
    node.write(record("c", "3"))
    assert node.told == []
    node.controller.committed(node.log.next_offset - 2)
    assert node.told == [{"b": {"n": "2"}}]
    node.controller.renounce()
    assert node.controller.metadata.image.configs.get(Entity(TOPICS, "c")) is None
    node.commit(node.log.next_offset - 1, record("d", "4"))
    assert node.told == [{"b": {"n": "2"}}, {"d": {"n": "4"}}]
