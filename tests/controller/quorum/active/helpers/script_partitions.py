"""Steps with partitions: in-sync replicas, elections, reassignments, directories, and eligible leader replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.metadata.rules.election import ElectionType
from ottla.wire.api_keys import ApiKey

from .capture_kafka import Capture
from .script_brokers import beat, register
from .script_topics import create, placed


def alter_partition(
    capture: Capture,
    about: str,
    topic: str,
    number: int,
    leader: int,
    isr: Sequence[int],
    version: int = 3,
    broker: Mapping[str, Any] | None = None,
    topic_id: str | None = None,
    members: Mapping[int, int] | None = None,
    **changed: Any,
) -> Any:
    """The leader's request for other in-sync replicas. ``members``: other broker epochs than those registered."""
    known = capture.partition(topic, number) if topic_id is None else None
    fields = {"partition_index": number, "leader_epoch": known.leader_epoch if known is not None else 0}
    fields["partition_epoch"] = known.partition_epoch if known is not None else 0
    epochs = {**capture.epochs, **(members or {})}
    if version >= 3:
        fields["new_isr_with_epochs"] = [{"broker_id": each, "broker_epoch": epochs.get(each, -1)} for each in isr]
    else:
        fields["new_isr"] = list(isr)
    partitions = [{**fields, **changed}]
    topics = [{"topic_id": topic_id or capture.topic_id(topic), "partitions": partitions}]
    sender = {"broker_id": leader, "broker_epoch": capture.epochs.get(leader, -1), **(broker or {})}
    return capture.call(about, ApiKey.ALTER_PARTITION, version, **sender, topics=topics)


def in_sync_replicas(capture: Capture) -> None:
    """Partition a-0 of brokers 1, 2 and 3 is led by 1 at the end."""

    def alter(about: str, isr: Sequence[int], leader: int = 1, number: int = 0, **more: Any) -> None:
        alter_partition(capture, about, "a", number, leader, isr, **more)

    alter("one leaves", [1, 2])
    alter("it returns", [1, 2, 3])
    alter("another order", [3, 2, 1])
    alter("nothing changes", [3, 2, 1])
    alter("by version 2", [1, 2], version=2)
    alter("by version 2 it returns", [1, 2, 3], version=2)
    alter("without the epoch of a member", [1, 2], members={2: -1})
    alter("all again", [1, 2, 3])
    alter("refused: another epoch of the sender", [1, 2], broker={"broker_epoch": 1_000_000})
    alter("refused: an unknown sender", [1, 2], broker={"broker_id": 77})
    alter("refused: an unknown topic", [1, 2], topic_id="no topic")
    alter("refused: an unknown partition", [1, 2], leader_epoch=0, partition_epoch=0, partition_index=9)
    alter("refused: a leader epoch that is not yet", [1, 2], leader_epoch=9)
    alter("refused: a partition epoch that is not yet", [1, 2], partition_epoch=99)
    alter("refused: a partition epoch that has passed", [1, 2], partition_epoch=0)
    alter("refused: not the leader", [1, 2], leader=2)
    alter("refused: a member that is no replica", [1, 4])
    alter("refused: without the leader", [2, 3])
    alter("refused: nobody", [])
    alter("refused: recovering, with more than one", [1, 2], leader_recovery_state=1)
    alter("refused: recovering, after it has recovered", [1], leader_recovery_state=1)
    alter("refused: another epoch of a member", [1, 2], members={2: 1_000_000})
    beat(capture, "broker 3 is fenced", 3, want_fence=True, cordoned_log_dirs=[])
    alter("refused: a fenced member", [1, 2, 3])
    beat(capture, "broker 3 is unfenced", 3, cordoned_log_dirs=[])
    alter("broker 3 is in sync again", [1, 2, 3])
    alter("refused: a leader epoch that has passed", [1, 2], leader_epoch=-1)
    capture.call("no topics", ApiKey.ALTER_PARTITION, 3, broker_id=1, broker_epoch=capture.epochs[1])


def elections(capture: Capture) -> None:
    """Partition b-0 of brokers 1, 2 and 3 is led by 1 at the end, and unclean of brokers 2 and 3 by 3."""

    def elect(about: str, kind: ElectionType, wanted: Mapping[str, Sequence[int]] | None, version: int = 2) -> None:
        topics = None
        if wanted is not None:
            topics = [{"topic": name, "partitions": list(numbers)} for name, numbers in wanted.items()]
        kinds = {"election_type": int(kind)} if version else {}
        capture.call(about, ApiKey.ELECT_LEADERS, version, **kinds, topic_partitions=topics)

    preferred, unclean = ElectionType.PREFERRED, ElectionType.UNCLEAN
    elect("the preferred leader leads", preferred, {"b": [0]})
    beat(capture, "broker 1 is fenced", 1, want_fence=True, cordoned_log_dirs=[])
    elect("the preferred leader is fenced", preferred, {"b": [0]})
    beat(capture, "broker 1 is unfenced", 1, cordoned_log_dirs=[])
    elect("the preferred leader is not in sync", preferred, {"b": [0]})
    alter_partition(capture, "broker 1 is in sync again", "b", 0, 2, [2, 3, 1])
    elect("the preferred leader is elected", preferred, {"b": [0]}, version=0)
    elect("unknown topics and partitions", preferred, {"unknown": [0], "b": [9]})
    elect("an unclean election where there is a leader", unclean, {"b": [0]})
    elect("no partitions", preferred, {})
    create(capture, "a topic without eligible leaders", placed("unclean", [2, 3]))
    alter_partition(capture, "only broker 2 is in sync", "unclean", 0, 2, [2])
    beat(capture, "broker 2 is fenced", 2, want_fence=True, cordoned_log_dirs=[])
    elect("a preferred election without a leader", preferred, {"unclean": [0]})
    elect("an unclean election", unclean, {"unclean": [0]})
    alter_partition(capture, "the leader has recovered", "unclean", 0, 3, [3])
    beat(capture, "broker 2 is unfenced", 2, cordoned_log_dirs=[])
    for name in ("a", "b"):
        for number in (0, 1):
            leader = capture.partition(name, number).leader
            about = f"{name}-{number} has all in sync again"
            alter_partition(capture, about, name, number, leader, [1, 2, 3])
    elect("the preferred leaders of all partitions", preferred, None, version=1)
    elect("an unclean election of all partitions", unclean, None)


def reassignments(capture: Capture) -> None:
    """Topic r moves, and is back on brokers 1 and 2 at the end."""

    def reassign(about: str, replicas: Sequence[int] | None, number: int = 0, topic: str = "r", **more: Any) -> None:
        partitions = [{"partition_index": number, "replicas": None if replicas is None else list(replicas)}]
        topics = [{"name": topic, "partitions": partitions}]
        version = 1 if "allow_replication_factor_change" in more else 0
        capture.call(about, ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, topics=topics, **more)

    def ongoing(about: str, topics: Any) -> None:
        capture.call(about, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=topics)

    def alter(about: str, isr: Sequence[int], leader: int, number: int = 0) -> None:
        alter_partition(capture, about, "r", number, leader, isr)

    create(capture, "topic r", placed("r", [1, 2], [1, 2]))
    reassign("one replica moves", [3, 2])
    ongoing("one partition moves", None)
    ongoing("of a topic and partition", [{"name": "r", "partition_indexes": [0, 1]}])
    ongoing(
        "of unknown topics and partitions",
        [{"name": "unknown", "partition_indexes": [0]}, {"name": "r", "partition_indexes": [9]}],
    )
    alter("the new replica is in sync: the leader moves away, and the move ends", [1, 2, 3], 1)
    reassign("back", [1, 2])
    alter("it ends, and the leader stays", [3, 2, 1], 3)
    reassign("one more replica", [1, 2, 3], 1)
    reassign("the move is cancelled", None, 1)
    reassign("only the order changes", [2, 1], 1)
    reassign("a fenced broker is to have one", [1, 4], 1)
    reassign("another move takes its place", [3, 4], 1)
    reassign("that is cancelled", None, 1)
    reassign("a replica leaves", [1], 1)
    reassign("it returns", [1, 2], 1)
    alter("it is in sync", [1, 2], 1, 1)
    reassign("without a change of the replication factor", [1, 3], 1, allow_replication_factor_change=False)
    reassign("the same is asked for again", [1, 3], 1, allow_replication_factor_change=False)
    reassign("that is cancelled", None, 1)
    reassign("refused: the replication factor is to change", [1, 2, 3], allow_replication_factor_change=False)
    reassign("refused: there is no move", None)
    reassign("refused: an unknown topic", [1], topic="unknown")
    reassign("refused: an unknown partition", [1], number=9)
    reassign("refused: no replicas", [])
    reassign("refused: an unknown broker", [1, 77])
    reassign("refused: two replicas on one broker", [1, 1])
    capture.call("no topics", ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, topics=[])


def directories(capture: Capture) -> None:
    """Broker 3 has two directories, and all replicas in the second at the end."""

    def assign(about: str, directory: str, topic_id: str, *numbers: int, broker: int = 3, **more: Any) -> None:
        topics = [{"topic_id": topic_id, "partitions": [{"partition_index": number} for number in numbers]}]
        fields = {"broker_id": broker, "broker_epoch": capture.epochs[broker], **more}
        directories = [{"id": directory, "topics": topics}]
        capture.call(about, ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, **fields, directories=directories)

    a = capture.topic_id("a")
    assign("replicas are in a directory", "3a", a, 0, 1)
    assign("they are there already", "3a", a, 0, 1)
    assign("one is in another directory", "3b", a, 0)
    assign("refused: an unknown directory", "3c", a, 0)
    assign("a lost directory", "lost", a, 1)
    assign("it is in one again", "3a", a, 1)
    assign("refused: an unknown topic", "3a", "no topic", 0)
    assign("refused: an unknown partition", "3a", a, 9)
    assign("refused: no replica of the broker", "3a", capture.topic_id("c.d"), 0)
    assign("refused: another epoch", "3a", a, 0, broker_epoch=1_000_000)
    alter_partition(capture, "broker 3 is in sync", "a", 1, capture.partition("a", 1).leader, [1, 2, 3])
    alter_partition(
        capture, "broker 3 is in sync in the other one", "a", 0, capture.partition("a", 0).leader, [1, 2, 3]
    )
    beat(capture, "a directory of broker 3 has failed", 3, offline_log_dirs=["3a"], cordoned_log_dirs=[])
    beat(capture, "it has failed still", 3, offline_log_dirs=["3a"], cordoned_log_dirs=[])
    register(capture, "broker 3 is registered again, by the same incarnation", 3)
    beat(capture, "broker 3 is unfenced", 3, cordoned_log_dirs=[])


def eligible_leaders(capture: Capture) -> None:
    """Topic elr, of which two replicas have to be in sync, loses one broker after another, and gets them back."""
    create(capture, "topic elr", placed("elr", [1, 2, 3], configs={"min.insync.replicas": "2"}))

    def fence(broker: int) -> None:
        beat(capture, f"broker {broker} is fenced", broker, want_fence=True, cordoned_log_dirs=[])

    def unfence(broker: int) -> None:
        beat(capture, f"broker {broker} is unfenced", broker, cordoned_log_dirs=[])

    for broker in (3, 2, 1):
        fence(broker)
    unfence(2)
    leader = capture.partition("elr").leader
    if leader >= 0:
        alter_partition(capture, "the leader alone is in sync", "elr", 0, leader, [leader])
    fence(2)
    for broker in (1, 3, 2):
        unfence(broker)
    alter_partition(capture, "all are in sync", "elr", 0, capture.partition("elr").leader, [1, 2, 3])
    for name in ("a", "b"):
        for number in (0, 1):
            if (leader := capture.partition(name, number).leader) >= 0:
                alter_partition(capture, f"{name}-{number} has all in sync", name, number, leader, [1, 2, 3])
