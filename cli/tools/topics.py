"""``ottla topics list | create | alter | delete``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import kafka.errors
from kafka.admin import ConfigResource, ConfigResourceType

from ...base.wording import counted
from .client import ClusterConnection, pairs
from .cluster_view import find_topics, on_leaders
from .config_changes import change_configs, meant_setting
from .nearest import no_topic, topic_names
from .output import OutputColumn, print_rows
from .running import ToolError, UsageError, refusal

COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partitions", is_number=True),
    OutputColumn("replicas", is_number=True),
    OutputColumn("under_replicated", is_number=True),
    OutputColumn("records", is_number=True),
    OutputColumn("size", is_size=True),
)


def list_topics(connection: ClusterConnection, *, exclude_internal: bool, as_json: bool) -> None:
    """A row for each topic. ``records`` is how far the end offsets are from the start offsets, where leaders tell them."""
    with closing(connection.admin()) as admin:
        topics = [topic for topic in find_topics(admin, None) if not (exclude_internal and topic.is_internal)]
        told = on_leaders(admin, topics)
    rows = []
    for topic in topics:
        known = [told[key] for p in topic.partitions if (key := (topic.name, p.number)) in told]
        sizes = [partition.size for partition in known if partition.size is not None]
        rows.append(
            (
                topic.name,
                len(topic.partitions),
                max((len(partition.replicas) for partition in topic.partitions), default=0),
                topic.under_replicated,
                sum(partition.end - partition.start for partition in known) if known else None,
                sum(sizes) if sizes else None,
            )
        )
    print_rows(COLUMNS, rows, as_json=as_json)


def create(
    connection: ClusterConnection,
    names: Sequence[str],
    *,
    partitions: int | None,
    replication_factor: int | None,
    configs: Sequence[str] | None,
    if_not_exists: bool,
    validate_only: bool,
) -> int:
    """Create each topic; the exit code."""
    topic = {
        "num_partitions": partitions or -1,
        "replication_factor": replication_factor or -1,
        "configs": pairs("--config", configs),
    }
    with closing(connection.admin()) as admin:
        answer = admin.create_topics(dict.fromkeys(names, topic), validate_only=validate_only, raise_errors=False)
    allowed = {kafka.errors.TopicAlreadyExistsError.errno: "exists already"} if if_not_exists else {}
    done = "Would create topic" if validate_only else "Created topic"
    return _report(answer["topics"], done, allowed, configs=pairs("--config", configs))


def alter(
    connection: ClusterConnection,
    names: Sequence[str],
    *,
    partitions: int | None,
    configs: Sequence[str] | None,
    delete_configs: Sequence[str] | None,
) -> int:
    """Add partitions and change settings, of each topic alike; the exit code."""
    if partitions is None and not configs and not delete_configs:
        raise UsageError("say what to alter: --partitions, --config or --delete-config")
    code = 0
    with closing(connection.admin()) as admin:
        find_topics(admin, names)
        if configs or delete_configs:
            resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
            change_configs(admin, resources, set_to=pairs("--config", configs), unset=delete_configs or ())
            print(f"Changed the settings of {', '.join(names)}.")
        if partitions is not None:
            answer = admin.create_partitions(dict.fromkeys(names, partitions), raise_errors=False).to_dict()
            code = _report(answer["results"], f"Raised to {counted(partitions, 'partition')}: topic", {})
    return code


def delete(connection: ClusterConnection, names: Sequence[str], *, if_exists: bool) -> int:
    """Delete each topic; the exit code."""
    with closing(connection.admin()) as admin:
        answer = admin.delete_topics(list(names), raise_errors=False)
        allowed = {kafka.errors.UnknownTopicOrPartitionError.errno: "does not exist"} if if_exists else {}
        return _report(answer["topics"], "Deleted topic", allowed, lambda name: no_topic(name, topic_names(admin)))


def _report(
    results: Sequence[Mapping[str, Any]],
    done: str,
    allowed: Mapping[int, str],
    absent: Callable[[str], ToolError] | None = None,
    configs: Iterable[str] = (),
) -> int:
    """A line for each topic. Raises ToolError with the refusals; ``absent`` words that of a topic that is not there."""
    refused = []
    for result in results:
        name, code = result["name"], result["error_code"]
        if not code:
            print(f"{done} {name}.")
        elif code in allowed:
            print(f"Topic {name} {allowed[code]}.")
        else:
            if absent is not None and code == kafka.errors.UnknownTopicOrPartitionError.errno:
                refused.append(str(absent(name)))
                continue
            why = refusal(code, result.get("error_message")) + meant_setting(code, configs)
            refused.append(why if name in why else f"{name}: {why}")
    if refused:
        raise ToolError("; ".join(refused))
    return 0
