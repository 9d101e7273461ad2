"""Incremental changes of settings, for ``topics alter`` and ``configs set | unset``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import kafka.errors
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from ...base.kafka_property_names import KAFKA_PROPERTY_NAMES
from ...base.listener_names import without_prefix
from ...base.wording import meant
from .client import Admin, DescribedConfigs
from .running import ToolError, refusal

_ERROR = re.compile(r"\[Error (-?\d+)\] \w+:? ?(.*)", re.DOTALL)


def change_configs(
    admin: Admin, resources: Sequence[ConfigResource], *, set_to: Mapping[str, str], unset: Iterable[str]
) -> None:
    """Set and unset the same settings of each resource. Raises ToolError with the refusals.

    A broker, Kafka's too, takes the removal of a setting that does not exist; here it is refused. So is setting one of a broker
    that is most likely misspelt: brokers take any name there, for it may be of a class of Java that somebody has added.
    """
    unset = list(unset)
    if unset:
        _check_names(admin, resources, unset)
    if any(resource.resource_type == ConfigResourceType.BROKER for resource in resources):
        _check_spelling(admin, resources, set_to)
    for resource in resources:
        resource.configs = {name: (AlterConfigOp.SET, value) for name, value in set_to.items()}
        resource.configs |= dict.fromkeys(unset, (AlterConfigOp.DELETE, None))
    apply_changes(admin, resources)


def apply_changes(admin: Admin, resources: Sequence[ConfigResource]) -> None:
    """Have the changes made that the resources name, each its own. Raises ToolError with the refusals."""
    answer = admin.alter_configs(list(resources), incremental=True, raise_on_unknown=False)
    refused = []
    for resource in resources:
        result = answer[resource.resource_type.name.lower()][resource.name]
        if result != "OK":
            found = _ERROR.fullmatch(result)
            why = refusal(int(found[1]), found[2]) + _near(admin, resource, int(found[1])) if found else result
            refused.append(f"{_whose(resource)}: {why}")
    if refused:
        raise ToolError("; ".join(refused))


def check_described(described: DescribedConfigs, whose: str) -> None:
    """Raises ToolError where a broker has refused to describe the settings."""
    for code, words in described.refused:
        raise ToolError(f"{whose}: {refusal(code, words)}")


def meant_setting(code: int, names: Iterable[str]) -> str:
    """The end of the refusal, with an error's code, of settings of a topic that is not there yet."""
    from ...log.settings import LogSettings  # rarely needed, and by commands that start quickly

    return _meant(code, names, LogSettings.topic_settings())


def _meant(code: int, names: Iterable[str], known: Collection[str]) -> str:
    unknown = [name for name in names if name not in known]
    return meant(unknown[0], known) if unknown and code == kafka.errors.InvalidConfigurationError.errno else ""


def _near(admin: Admin, resource: ConfigResource, code: int) -> str:
    """The end of the refusal of a resource's settings."""
    if code != kafka.errors.InvalidConfigurationError.errno:
        return ""
    asked = ConfigResource(resource.resource_type, resource.name)
    return _meant(code, resource.configs, _known_names(admin, [asked]))


def _check_spelling(admin: Admin, resources: Sequence[ConfigResource], names: Iterable[str]) -> None:
    """Raises ToolError for a setting of a broker that neither the broker nor Kafka has, and that is like one of theirs."""
    known = _known_names(admin, resources)
    for name in (without_prefix(name) for name in names):
        if name not in known:
            from ...broker.config_file import declared_names  # as above

            everything = known | declared_names() | KAFKA_PROPERTY_NAMES
            if name not in everything and (close := meant(name, everything)):
                raise ToolError(f"there is no setting {name}{close}")


def _check_names(admin: Admin, resources: Sequence[ConfigResource], names: Sequence[str]) -> None:
    known = _known_names(admin, resources, must_tell=True)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolError(f"there is no setting {', '.join(unknown)}{meant(unknown[0], known)}")


def _known_names(admin: Admin, resources: Sequence[ConfigResource], *, must_tell: bool = False) -> set[str]:
    """The settings that the resources have. Raises ToolError for a refusal if they ``must_tell``."""
    asked = list(resources)
    if any(resource.name == "" for resource in resources):
        # Of all brokers' there are only those that were set; what else there could be, one of the brokers knows.
        broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
        asked.append(ConfigResource(ConfigResourceType.BROKER, broker))
    described = admin.describe_configs(asked, config_filter="all")
    if must_tell:
        check_described(described, ", ".join(map(_whose, resources)))
    return {name for by_resource in described.values() for entries in by_resource.values() for name in entries}


def _whose(resource: ConfigResource) -> str:
    if resource.name == "":
        return "all brokers"
    return f"{resource.resource_type.name.lower()} {resource.name}"
