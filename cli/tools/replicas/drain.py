"""``ottla cluster drain``: a broker that is about to stop hands its leaderships over.

It asks the controller what a broker asks itself when it is sent SIGTERM (ControlledShutdown), under broker epoch -1, which
stands for any. So it means the same: from then on the broker leads nothing that another replica in sync can lead, and is in
sync where it follows no more; it is not elected again, and does not join, before it is registered again by a restart. What
this adds to SIGTERM is that nothing is done where it would leave too few replicas in sync, and that the outcome is told
before the broker is gone. Kafka's controller has it in ZooKeeper mode only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from ....base.wording import counted, listed
from ....wire.messages.controlled_shutdown import ControlledShutdownRequest
from ..client import Admin, ClusterConnection
from ..cluster_view import Key, TopicPartitionInfo, find_topics, topic_settings
from ..nearest import no_broker
from ..output import OutputColumn, as_object, print_json, print_rows
from ..running import ToolError, UsageError, refusal
from ..wire_request import WireRequest

_VERSIONS = (1, 3)
_ANY_EPOCH = -1
_ASK_AGAIN_S = 0.5
_LOOK_AGAIN_S = 0.05
_MOST_NAMED = 3
_TIMEOUT_MS = 60_000

LEFT = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("replicas"),
    OutputColumn("isr"),
    OutputColumn("why"),
)

Partitions = Mapping[Key, TopicPartitionInfo]


class DrainResult(NamedTuple):
    """What became of the leaderships of a broker."""

    moved: Mapping[Key, int | None]
    """The new leader by partition."""
    left: Partitions
    """The partitions that the broker leads still."""
    alone: Sequence[Key]
    """The partitions of which it has the only replica."""


def drain(
    connection: ClusterConnection,
    broker_id: int,
    *,
    force: bool,
    throttle: int | None,
    timeout_ms: int | None,
    as_json: bool,
) -> None:
    """Move the leaderships away, wait until clients are told, and say what became of them. Raises ToolError if some stay."""
    if throttle is not None:
        raise UsageError("--throttle is for --replicas: leaderships move without data")
    until = time.monotonic() + (_TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000
    with closing(connection.admin()) as admin:
        if not admin.knows(WireRequest(_request(broker_id), *_VERSIONS)):
            raise ToolError(
                "these brokers don't take ControlledShutdown, which Kafka has with ZooKeeper only; "
                "a broker of KRaft hands its leaderships over when it is stopped by SIGTERM"
            )
        _check_broker(admin, broker_id)
        if not force:
            _check_min_isr(admin, broker_id)
        before = _led(admin, broker_id)
        alone = sorted(key for key, partition in before.items() if len(partition.replicas) == 1)
        while True:
            # Again and again: a follower that is not in sync yet can lead as soon as it is.
            asked = _ask(admin, broker_id)
            left = _wait_until_told(admin, broker_id, asked, until)
            if time.monotonic() >= until or not any(_has_heir(partition, broker_id) for partition in left.values()):
                break
            time.sleep(_ASK_AGAIN_S)
        now = _everything(admin)
    moved = {key: now[key].leader for key in sorted(before) if key in now and key not in left and key not in alone}
    _print(broker_id, DrainResult(moved, left, alone), as_json=as_json)
    if left:
        raise ToolError(
            f"broker {broker_id} leads {counted(len(left), 'partition')} still, which will have no leader without it"
        )


def _check_broker(admin: Admin, broker_id: int) -> None:
    ids = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    if broker_id not in ids:
        raise no_broker([broker_id], ids)
    if len(ids) == 1:
        raise ToolError(f"there is no broker but {broker_id}, so that no other one can lead")


def _check_min_isr(admin: Admin, broker_id: int) -> None:
    """Raises ToolError if producers with acks=all were refused without this broker that are not refused now."""
    topics = find_topics(admin, None)
    settings = topic_settings(admin, topics)
    endangered = [
        f"{topic.name}-{partition.number}"
        for topic in topics
        for partition in topic.partitions
        if broker_id in partition.isr and len(partition.isr) > 1 and partition.spare(settings[topic.name].min_isr) == 0
    ]
    if endangered:
        named = listed(endangered, _MOST_NAMED)
        raise ToolError(
            f"without broker {broker_id}, {counted(len(endangered), 'partition')} would refuse acks=all, "
            f"having fewer replicas in sync than min.insync.replicas: {named}; "
            "wait until 'ottla cluster wait' ends, or say --force"
        )


def _ask(admin: Admin, broker_id: int) -> set[Key]:
    """Have the controller move everything: what it could not."""
    answer = admin.ask_controller(WireRequest(_request(broker_id), *_VERSIONS))
    if answer.error_code:
        raise ToolError(refusal(answer.error_code, None))
    return {(partition.topic_name, partition.partition_index) for partition in answer.remaining_partitions}


def _request(broker_id: int) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=broker_id, broker_epoch=_ANY_EPOCH)


def _wait_until_told(admin: Admin, broker_id: int, expected: set[Key], until: float) -> Partitions:
    """What clients are told that the broker leads, once that is no more than ``expected`` or the time has ended."""
    while True:
        led = {key: partition for key, partition in _led(admin, broker_id).items() if len(partition.replicas) > 1}
        if led.keys() <= expected or time.monotonic() >= until:
            return led
        time.sleep(_LOOK_AGAIN_S)


def _has_heir(partition: TopicPartitionInfo, broker_id: int) -> bool:
    """Whether another replica is alive, which may be in sync soon."""
    return bool(set(partition.replicas) - set(partition.offline) - {broker_id})


def _everything(admin: Admin) -> Partitions:
    return {(topic.name, p.number): p for topic in find_topics(admin, None) for p in topic.partitions}


def _led(admin: Admin, broker_id: int) -> Partitions:
    return {key: partition for key, partition in _everything(admin).items() if partition.leader == broker_id}


def _print(broker_id: int, outcome: DrainResult, *, as_json: bool) -> None:
    rows = [
        (*key, list(partition.replicas), list(partition.isr), _why(partition, broker_id))
        for key, partition in sorted(outcome.left.items())
    ]
    if as_json:
        print_json(
            {
                "broker": broker_id,
                "drained": not outcome.left,
                "moved": [{"topic": t, "partition": p, "leader": leader} for (t, p), leader in outcome.moved.items()],
                "left": [as_object(LEFT, row) for row in rows],
                "only_replica": [{"topic": topic, "partition": partition} for topic, partition in outcome.alone],
            }
        )
        return
    print(f"Moved {counted(len(outcome.moved), 'leadership')} of broker {broker_id}{_whereto(outcome.moved.values())}.")
    if outcome.alone:
        print(
            f"It is the only replica of {counted(len(outcome.alone), 'partition')}, which will be offline without it."
        )
    if rows:
        print_rows(LEFT, rows)
    else:
        print("It can be stopped, and is not elected again before it is started again.")


def _whereto(leaders: Iterable[int | None]) -> str:
    counts = Counter(leader for leader in leaders if leader is not None)
    listed = ", ".join(f"{count} to broker {leader}" for leader, count in sorted(counts.items()))
    return f": {listed}" if listed else ""


def _why(partition: TopicPartitionInfo, broker_id: int) -> Any:
    down = sorted(set(partition.offline) - {broker_id})
    if _has_heir(partition, broker_id):
        return "no other replica is in sync"
    return f"brokers {','.join(map(str, down))} are down" if len(down) > 1 else f"broker {down[0]} is down"
