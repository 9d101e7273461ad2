"""Incremental changes of settings, for ``topics alter`` and ``configs set | unset``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from ...base.wording import meant
from .client import Admin, DescribedConfigs
from .running import ToolError, refusal

_ERROR = re.compile(r"\[Error (-?\d+)\] \w+:? ?(.*)", re.DOTALL)


def change_configs(
    admin: Admin, resources: Sequence[ConfigResource], *, set_to: Mapping[str, str], unset: Iterable[str]
) -> None:
    """Set and unset the same settings of each resource. Raises ToolError with the refusals.

    A broker, Kafka's too, takes the removal of a setting that does not exist; here it is refused.
    """
    unset = list(unset)
    if unset:
        _check_names(admin, resources, unset)
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
            why = refusal(int(found[1]), found[2]) if found else result
            refused.append(f"{_whose(resource)}: {why}")
    if refused:
        raise ToolError("; ".join(refused))


def check_described(described: DescribedConfigs, whose: str) -> None:
    """Raises ToolError where a broker has refused to describe the settings."""
    for code, words in described.refused:
        raise ToolError(f"{whose}: {refusal(code, words)}")


def _check_names(admin: Admin, resources: Sequence[ConfigResource], names: Sequence[str]) -> None:
    asked = list(resources)
    if any(resource.name == "" for resource in resources):
        # Of all brokers' there are only those that were set; what else there could be, one of the brokers knows.
        broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
        asked.append(ConfigResource(ConfigResourceType.BROKER, broker))
    described = admin.describe_configs(asked, config_filter="all")
    check_described(described, ", ".join(map(_whose, resources)))
    known = {name for by_resource in described.values() for entries in by_resource.values() for name in entries}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolError(f"there is no setting {', '.join(unknown)}{meant(unknown[0], known)}")


def _whose(resource: ConfigResource) -> str:
    if resource.name == "":
        return "all brokers"
    return f"{resource.resource_type.name.lower()} {resource.name}"
