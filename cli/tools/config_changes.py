"""Changes of settings, for ``topics alter`` and ``configs set | unset``: incremental, so that the rest stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kafka.admin import AlterConfigOp, ConfigResource

from .client import Admin
from .running import ToolError, refusal

_ERROR = re.compile(r"\[Error (-?\d+)\] \w+:? ?(.*)", re.DOTALL)


def change_configs(
    admin: Admin, resources: Sequence[ConfigResource], *, set_to: Mapping[str, str], unset: Iterable[str]
) -> None:
    """Set and unset the same settings of each resource. Raises ToolError with the refusals."""
    for resource in resources:
        resource.configs = {name: (AlterConfigOp.SET, value) for name, value in set_to.items()}
        resource.configs |= dict.fromkeys(unset, (AlterConfigOp.DELETE, None))
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


def _whose(resource: ConfigResource) -> str:
    if resource.name == "":
        return "all brokers"
    return f"{resource.resource_type.name.lower()} {resource.name}"
