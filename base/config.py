"""The configuration of one process: Kafka's properties as given, and the parsed settings of each folder on demand.

Properties come from a file, then from overrides, the later one winning; they are strings until a folder asks for its
settings. Nothing here reads a file (``broker.config_file`` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from .settings import Settings

S = TypeVar("S", bound=Settings)


class Config:
    """Properties by name, and each ``Settings`` class parsed once from them."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: dict[str, str] = dict(properties or {})
        self._parsed: dict[type[Settings], Settings] = {}

    def settings(self, settings_class: type[S]) -> S:
        """The settings of one folder. Raises SettingError the first time, when a value is malformed."""
        parsed = self._parsed.get(settings_class)
        if parsed is None:
            parsed = self._parsed[settings_class] = settings_class.from_properties(self.properties)
        return cast(S, parsed)

    def parsed(self) -> list[Settings]:
        """The settings of every folder that asked for its own so far."""
        return list(self._parsed.values())

    def is_given(self, name: str) -> bool:
        """Whether the broker property was set by somebody, rather than left at its default."""
        return name in self.properties
