"""``ottla configs describe | set | unset``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import closing

from kafka.admin import ConfigResource, ConfigResourceType

from .client import Admin, ClusterConnection, pairs
from .cluster_view import find_topics
from .config_changes import change_configs, check_described
from .nearest import no_broker, tell_of_like_group
from .output import OutputColumn, print_rows
from .running import UsageError

COLUMNS = (OutputColumn("name"), OutputColumn("value"), OutputColumn("source"), OutputColumn("read_only"))


@dataclasses.dataclass(frozen=True)
class ConfigEntityOptions:
    """Whose settings: just one of these."""

    topic: str | None
    broker: int | None
    broker_defaults: bool
    group: str | None = None

    def check(self) -> None:
        """Raises UsageError unless just one is given."""
        given = (self.topic is not None, self.group is not None, self.broker is not None, self.broker_defaults)
        if sum(given) != 1:
            raise UsageError("say whose settings: --topic NAME, --group ID, --broker ID or --broker-defaults")

    def is_set_there(self, source: str) -> bool:
        """Whether a setting from this source was set on the thing itself, in a broker's case at its start, too."""
        if self.topic is not None:
            return source == "DYNAMIC_TOPIC_CONFIG"
        return source == "DYNAMIC_GROUP_CONFIG" if self.group is not None else source != "DEFAULT_CONFIG"

    def __str__(self) -> str:
        if self.topic is not None:
            return f"topic {self.topic}"
        if self.group is not None:
            return f"group {self.group}"
        return "all brokers" if self.broker_defaults else f"broker {self.broker}"

    def resource(self, admin: Admin) -> ConfigResource:
        """As the client names it. Raises ToolError when it is not there."""
        if self.topic is not None:
            find_topics(admin, [self.topic])
            return ConfigResource(ConfigResourceType.TOPIC, self.topic)
        if self.group is not None:
            tell_of_like_group(admin, self.group)  # settings may be there before the group
            return ConfigResource(ConfigResourceType.GROUP, self.group)
        if self.broker is not None:
            ids = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
            if self.broker not in ids:
                raise no_broker([self.broker], ids)
        return ConfigResource(ConfigResourceType.BROKER, "" if self.broker_defaults else str(self.broker))


def describe(connection: ClusterConnection, entity: ConfigEntityOptions, *, show_all: bool, as_json: bool) -> None:
    """A row for each setting that was set, or for all of them."""
    entity.check()
    with closing(connection.admin()) as admin:
        resource = entity.resource(admin)
        described = admin.describe_configs([resource], config_filter="all")
    check_described(described, str(entity))
    entries = described[resource.resource_type.name.lower()][resource.name]
    if not show_all:
        entries = {name: entry for name, entry in entries.items() if entity.is_set_there(entry["config_source"])}
    rows = [
        (name, "(hidden)" if entry["is_sensitive"] else entry["value"], entry["config_source"], entry["read_only"])
        for name, entry in sorted(entries.items())
    ]
    print_rows(COLUMNS, rows, as_json=as_json)


def set_configs(connection: ClusterConnection, entity: ConfigEntityOptions, settings: Sequence[str]) -> None:
    """Set settings. Raises ToolError with the broker's refusal."""
    entity.check()
    wanted = pairs("ottla configs set", settings)
    with closing(connection.admin()) as admin:
        change_configs(admin, [entity.resource(admin)], set_to=wanted, unset=())
    print(f"Set {', '.join(wanted)} of {entity}.")


def unset_configs(connection: ClusterConnection, entity: ConfigEntityOptions, names: Sequence[str]) -> None:
    """Unset settings. Raises ToolError with the broker's refusal."""
    entity.check()
    with closing(connection.admin()) as admin:
        change_configs(admin, [entity.resource(admin)], set_to={}, unset=names)
    print(f"Unset {', '.join(names)} of {entity}.")
