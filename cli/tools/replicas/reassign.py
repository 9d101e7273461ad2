"""``ottla cluster reassign`` and ``add-replicas``: replaces replicas as a file says, or adds some."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

import kafka.errors

from ....base.wording import counted
from ..client import Admin, ClusterConnection
from ..cluster_view import Key, chosen_partitions
from ..nearest import no_broker, no_topic
from ..output import print_json
from ..running import ToolError, UsageError, refusal
from . import reassignment_file
from .carry_out import Limits, carry_out, remove_throttle
from .move_progress import wait
from .moves import ClusterLayout, named, submit
from .reassignment_file import Folders
from .replica_plan import Replicas, spread, with_factor

_CANCEL_S = 30.0


def reassign(connection: ClusterConnection, path: Path | None, limits: Limits, *, as_json: bool) -> None:
    """Do what a file asks for, or without one wait for all that is under way. Raises ToolError."""
    wanted = None if path is None else reassignment_file.read(path)
    with closing(connection.admin()) as admin:
        layout = ClusterLayout(admin)
        targets = {key: move.target for key, move in layout.moves.items()} if wanted is None else wanted.replicas
        _check(layout, targets)
        targets = {
            key: target for key, target in targets.items() if key in layout.moves or target != layout.targets[key]
        }
        if wanted is not None and wanted.folders:
            _choose_folders(admin, wanted.folders)
        outcome = carry_out(admin, layout, targets, limits)
    if as_json:
        print_json(outcome.as_objects)
    elif outcome.rows:
        outcome.show()
    else:
        print("No replicas are on their way." if wanted is None else "Every replica is where it is to be.")
    outcome.check()


def _check(layout: ClusterLayout, targets: dict[Key, Replicas]) -> None:
    unknown = sorted(key for key in targets if key not in layout.partitions)
    if unknown:
        names = {topic for topic, _ in layout.partitions}
        strange_topics = [topic for topic, _ in unknown if topic not in names]
        raise no_topic(strange_topics[0], names) if strange_topics else ToolError(f"there is no {named(unknown)}")
    absent = sorted({replica for replicas in targets.values() for replica in replicas} - layout.racks.keys())
    kept = {replica for key in targets for replica in layout.partitions[key].replicas}
    if strange := [broker for broker in absent if broker not in kept]:
        raise no_broker(strange, layout.racks)


def _choose_folders(admin: Admin, folders: Folders) -> None:
    """Have brokers keep replicas in these folders: those that come, and those that are there, which they then move.

    Raises ToolError. This comes before the replicas do: a broker that has none yet says so, and remembers.
    """
    refused = [
        f"{topic}-{number} on broker {broker}: {refusal(kind.errno, None)}"
        for (topic, number, broker), kind in admin.alter_replica_log_dirs(folders).items()
        if kind.errno not in (0, kafka.errors.ReplicaNotAvailableError.errno)
    ]
    if refused:
        raise ToolError("; ".join(refused))


def cancel(connection: ClusterConnection, path: Path | None, *, as_json: bool) -> None:
    """Cancel what is under way of what a file names, or all of it: the replicas from before are all there are. ToolError."""
    wanted = None if path is None else reassignment_file.read(path)
    left: Collection[Key] = ()
    with closing(connection.admin()) as admin:
        layout = ClusterLayout(admin)
        keys = sorted(key for key in layout.moves if wanted is None or key in wanted.replicas)
        if keys:
            submit(admin, dict.fromkeys(keys))
            left = wait(admin, keys, _CANCEL_S)
            remove_throttle(admin, keys)
    if as_json:
        print_json([{"topic": topic, "partition": partition} for topic, partition in keys])
    else:
        print(f"Cancelled {counted(len(keys), 'move')}: {named(keys)}." if keys else "No replicas are on their way.")
    if left:
        raise ToolError(f"still on the way back: {named(sorted(left))}")


def generate(connection: ClusterConnection, topics: Sequence[str] | None, brokers: str | None) -> None:
    """Print a file that spreads topics evenly over brokers. Raises ToolError."""
    if not topics:
        raise UsageError("--generate needs topics: --topic NAME")
    with closing(connection.admin()) as admin:
        layout = ClusterLayout(admin)
        ids = sorted(layout.racks) if brokers is None else _ids(brokers, layout)
        chosen = {
            (topic.name, p.number): layout.targets[topic.name, p.number]
            for topic, p in chosen_partitions(admin, topics)
        }
    plan = spread(chosen, {broker_id: layout.racks[broker_id] for broker_id in ids})
    if plan.stuck:
        raise ToolError(f"there are not enough brokers for the replicas of {named(plan.stuck)}")
    print(reassignment_file.write(chosen | plan.changes))


def _ids(text: str, layout: ClusterLayout) -> list[int]:
    if not all(part.strip().isdigit() for part in text.split(",")):
        raise UsageError(f"--brokers takes ids as 1,2,3, not {text!r}")
    ids = sorted({int(part) for part in text.split(",")})
    if strange := [broker_id for broker_id in ids if broker_id not in layout.racks]:
        raise no_broker(strange, layout.racks)
    return ids


def add_replicas(
    connection: ClusterConnection, names: Sequence[str], limits: Limits, *, replication_factor: int, as_json: bool
) -> None:
    """Have partitions get more replicas; those that have as many, or more, stay as they are. Raises ToolError."""
    with closing(connection.admin()) as admin:
        layout = ClusterLayout(admin)
        keys = [(topic.name, partition.number) for topic, partition in chosen_partitions(admin, names)]
        receiving = layout.receiving
        plan = with_factor(layout.targets, keys, replication_factor, receiving)
        if plan.stuck:
            absent = "".join(f"; broker {each} is in sync nowhere" for each in sorted(layout.racks.keys() - receiving))
            raise ToolError(
                f"there are {counted(len(receiving), 'broker')}, too few for {replication_factor} replicas{absent}"
            )
        begun = {key: layout.targets[key] for key in keys if key in layout.moves}
        outcome = carry_out(admin, layout, begun | plan.changes, limits)
    if as_json:
        print_json(outcome.as_objects)
    elif outcome.rows:
        outcome.show()
    else:
        print(f"Every partition has {counted(replication_factor, 'replica')} already.")
    outcome.check()
