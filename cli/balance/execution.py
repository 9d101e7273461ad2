"""Throttled execution of a plan, one step after the other, and cleanup after a run that was killed.

The state is in the cluster alone: what is under way, and its throttle. Whoever runs the command next waits for that, removes the
throttle, and makes a new plan of what is there. So a run may end at any point, and of a step either all ends by itself, or the
next run has it end.

A step is begun only where it is safe by then: a partition that has other replicas than the plan took for granted, or some that
are not in sync, or whose leader-to-be is not, is left out.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

import kafka.errors
from kafka.admin import ConfigResource, ConfigResourceType

from ...balance.folders import FolderMove
from ...balance.model import Key, Replicas
from ...balance.plan import PlannedMove
from ...base.wording import counted
from ..tools.client import Admin
from ..tools.cluster_view import TopicPartitionInfo, find_topics, topic_settings
from ..tools.output import size_text
from ..tools.replicas.carry_out import remove_throttle
from ..tools.replicas.move_progress import wait
from ..tools.replicas.moves import ClusterLayout, named, submit, under_way
from ..tools.replicas.replication_throttle import RATES, REPLICAS, throttle, unthrottle
from ..tools.running import ToolError, refusal
from .stopping import Stop

_PREFERRED = 0
_SETTLE_S = 10.0
_PAUSE_S = 0.05
_EVERYTHING = "*"
_CANCEL_S = 30.0


@dataclasses.dataclass
class BalanceResult:
    """The outcome of a plan."""

    done: list[Key] = dataclasses.field(default_factory=list)
    """Partitions whose move has ended."""
    left_out: dict[Key, str] = dataclasses.field(default_factory=dict)
    """Partitions that were not moved, with the reason."""
    is_stopped: bool = False
    """Whether it was stopped on request before the end."""


def finish_earlier_run(admin: Admin, bytes_per_second: int | None) -> None:
    """Wait for what an earlier run has begun, and remove the throttle that it left. Raises ToolError, KeyboardInterrupt."""
    layout = ClusterLayout(admin)
    if layout.moves:
        _say(f"waits for {counted(len(layout.moves), 'partition')} on the way already: {named(sorted(layout.moves))}")
        if bytes_per_second is not None:
            throttle(admin, layout.moves, bytes_per_second, layout.racks.keys())
        wait(admin, layout.moves.keys(), math.inf)
        remove_throttle(admin, layout.moves.keys())
    _remove_leftovers(admin)


def carry_out(
    admin: Admin,
    steps: Sequence[Sequence[PlannedMove]],
    folders: Mapping[tuple[str, int, int], str],
    bytes_per_second: int | None,
    stop: Stop,
) -> BalanceResult:
    """Do the steps in their order, until the last or a stop. ``folders`` are those that new replicas are to be in.

    Raises ToolError; KeyboardInterrupt when the step under way was cancelled. The throttle is removed in any case, unless the
    controller can't be asked any more.
    """
    run = BalanceResult()
    for number, step in enumerate(steps, 1):
        if stop:
            run.is_stopped = True
            break
        # Anew for each step, which may take hours: others delete topics, move replicas and stop brokers meanwhile.
        layout = ClusterLayout(admin)
        targets = {}
        for move in step:
            why = _why_not(layout, move)
            if why is None:
                targets[move.key] = move.after
            else:
                run.left_out[move.key] = why
        size = size_text(sum(move.bytes for move in step if move.key in targets))
        _say(f"step {number} of {len(steps)}: {counted(len(targets), 'partition')}, {size}")
        if targets:
            # Before the replicas are there: later it would be a second move, of bytes that were just copied.
            _choose_folders(admin, layout, targets, folders)
            _do(admin, layout, targets, bytes_per_second)
            elect(admin, targets)
            run.done += targets
    return run


def _why_not(layout: ClusterLayout, move: PlannedMove) -> str | None:
    partition = layout.partitions.get(move.key)
    if partition is None:
        return "it was deleted"
    if layout.targets[move.key] != move.before:
        return "it was moved meanwhile"
    if partition.leader is None:
        return "it has no leader"
    if not move.adding and move.after[0] not in partition.isr:
        return f"broker {move.after[0]} is not in sync"
    if dead := [broker for broker in move.adding if broker not in layout.racks]:
        return f"broker {dead[0]} is down"
    staying = {broker for broker in move.before if broker in layout.racks}
    if not staying <= {*partition.isr}:
        return "a replica is not in sync"
    return None


def _do(admin: Admin, layout: ClusterLayout, targets: Mapping[Key, Replicas], bytes_per_second: int | None) -> None:
    """One step, from its throttle to the end of it."""
    moves = {key: layout.move_to(key, target) for key, target in targets.items()}
    is_throttled = bytes_per_second is not None and any(move.adding for move in moves.values())
    try:
        if bytes_per_second is not None and is_throttled:
            throttle(admin, layout.moves | moves, bytes_per_second, layout.racks.keys())
        submit(admin, targets)
        wait(admin, targets.keys(), math.inf)
    except KeyboardInterrupt:
        _say("cancels the moves under way")
        if left := {key: None for key in under_way(admin) if key in targets}:
            submit(admin, left)
            wait(admin, left.keys(), _CANCEL_S)
        raise
    finally:
        if is_throttled:
            remove_throttle(admin, targets)


def _choose_folders(
    admin: Admin, layout: ClusterLayout, targets: Mapping[Key, Replicas], folders: Mapping[tuple[str, int, int], str]
) -> None:
    """A broker that has no such replica yet says so, and remembers the folder."""
    wanted = {
        (*key, broker): folders[*key, broker]
        for key, target in targets.items()
        for broker in target
        if (*key, broker) in folders and broker not in layout.partitions[key].replicas
    }
    if wanted:
        _alter_folders(admin, wanted, allowed=(0, kafka.errors.ReplicaNotAvailableError.errno))


def move_folders(admin: Admin, moves: Sequence[FolderMove], stop: Stop) -> list[FolderMove]:
    """Have brokers move replicas between their folders, one after the other; those that were moved. Raises ToolError."""
    done: list[FolderMove] = []
    for move in moves:
        if stop:
            break
        topic, number = move.key
        _say(f"broker {move.broker_id}: {topic}-{number} to {move.after}, {size_text(move.size)}")
        _alter_folders(admin, {(topic, number, move.broker_id): move.after}, allowed=(0,))
        while (where := _folders_of(admin, move))[1]:
            time.sleep(_PAUSE_S)
        if move.after not in where[0]:
            raise ToolError(
                f"{topic}-{number} did not get to {move.after} on broker {move.broker_id}; its log says why"
            )
        done.append(move)
    return done


def _alter_folders(admin: Admin, wanted: Mapping[tuple[str, int, int], str], allowed: Sequence[int]) -> None:
    refused = [
        f"{topic}-{number} on broker {broker}: {refusal(kind.errno, None)}"
        for (topic, number, broker), kind in admin.alter_replica_log_dirs(dict(wanted)).items()
        if kind.errno not in allowed
    ]
    if refused:
        raise ToolError("; ".join(refused))


def _folders_of(admin: Admin, move: FolderMove) -> tuple[set[str], set[str]]:
    """The folder that a replica is in, and the one that it is being moved to, while it is."""
    found: tuple[set[str], set[str]] = (set(), set())
    for folder in admin.folders(move.broker_id, {move.key[0]: [move.key[1]]}):
        for topic in folder["topics"]:
            for partition in topic["partitions"]:
                found[bool(partition["is_future_key"])].add(folder["log_dir"])
    return found


def elect(admin: Admin, keys: Iterable[Key]) -> None:
    """Have the first replicas of these partitions lead, where they are in sync; return when clients are told, or later."""
    wanted = {key for key, p in _partitions(admin, keys).items() if p.leader != p.preferred and p.preferred in p.isr}
    if not wanted:
        return
    grouped: dict[str, list[int]] = {}
    for topic, number in sorted(wanted):
        grouped.setdefault(topic, []).append(number)
    admin.elect_leaders(_PREFERRED, grouped, raise_errors=False)
    until = time.monotonic() + _SETTLE_S
    while time.monotonic() < until:
        if all(p.leader == p.preferred for p in _partitions(admin, wanted).values()):
            return
        time.sleep(_PAUSE_S)


def _partitions(admin: Admin, keys: Iterable[Key]) -> dict[Key, TopicPartitionInfo]:
    wanted = set(keys)
    topics = find_topics(admin, None)
    return {(t.name, p.number): p for t in topics for p in t.partitions if (t.name, p.number) in wanted}


def _remove_leftovers(admin: Admin) -> None:
    """Take away the throttle of a run that was killed, now that nothing is under way.

    What is throttled for good (``*``) is of another mind, and stays, as do the brokers' rates then.
    """
    if under_way(admin):
        return
    overrides = {name: found.overrides for name, found in topic_settings(admin, find_topics(admin, None)).items()}
    listed = {name: {found[each] for each in REPLICAS if each in found} for name, found in overrides.items()}
    topics = [name for name, values in listed.items() if values and _EVERYTHING not in values]
    for_good = any(_EVERYTHING in values for values in listed.values())
    brokers = [] if for_good else _throttled_brokers(admin)
    if topics or brokers:
        _say("removes the throttle that an earlier run has left")
        unthrottle(admin, topics, brokers)


def _throttled_brokers(admin: Admin) -> list[int]:
    live = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    described = admin.describe_configs(
        [ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in live], config_filter="all"
    )["broker"]
    return [
        broker
        for broker in live
        if any(described[str(broker)].get(rate, {}).get("config_source") == "DYNAMIC_BROKER_CONFIG" for rate in RATES)
    ]


def _say(text: str) -> None:
    print(f"ottla: {text}", file=sys.stderr, flush=True)
