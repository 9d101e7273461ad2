"""The configuration of a process: Kafka's properties, and the settings that each package parses from them on demand.

Properties come from a file, then from overrides, the later one winning; they are strings until a package asks for its
settings. Nothing here reads a file (``broker.config_file`` does).

Properties set while the broker runs (KIP-226) override those given at the start: first the ones for all brokers, then the ones
for this broker. ``change_dynamic`` replaces both and calls the listeners. Settings that were read before do not change: to follow
changes, call ``settings`` again, or add a listener to ``on_change``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from .settings import Settings

S = TypeVar("S", bound=Settings)


class Config:
    """Properties by name, and each ``Settings`` class parsed once from them."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: dict[str, str] = dict(properties or {})
        """Those given at the start."""
        self.dynamic_default: dict[str, str] = {}
        """Those set at run time for all brokers."""
        self.dynamic_broker: dict[str, str] = {}
        """Those set at run time for this broker."""
        self.checks: list[Callable[[Config], None]] = []
        """Called with a new configuration before it is stored. They raise SettingError where the broker cannot run with it."""
        self.on_change: list[Callable[[], None]] = []
        """Called after dynamic properties have changed."""
        self._parsed: dict[type[Settings], Settings] = {}

    def settings(self, settings_class: type[S]) -> S:
        """One class of settings, parsed at the first call. Raises SettingError when a value is malformed."""
        parsed = self._parsed.get(settings_class)
        if parsed is None:
            parsed = self._parsed[settings_class] = settings_class.from_properties(self.effective())
        return parsed  # type: ignore[return-value]

    def parsed(self) -> list[Settings]:
        """All settings that were parsed so far."""
        return list(self._parsed.values())

    def is_given(self, name: str) -> bool:
        """Whether the broker property was set, rather than left at its default."""
        return name in self.effective()

    def effective(self) -> dict[str, str]:
        """All properties, each from the strongest layer that has it."""
        return self.properties | self.dynamic_default | self.dynamic_broker

    def with_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> Config:
        """This configuration with other dynamic layers, parsed as far as this one is. Raises SettingError."""
        other = Config(self.properties)
        other.dynamic_default, other.dynamic_broker = dict(default), dict(broker)
        for settings_class in self._parsed:
            other.settings(settings_class)
        return other

    def change_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Replace the dynamic layers and call the listeners. Raises SettingError; then nothing is changed."""
        changed = self.with_dynamic(default, broker)
        self.dynamic_default, self.dynamic_broker = changed.dynamic_default, changed.dynamic_broker
        self._parsed = changed._parsed
        for listener in self.on_change:
            listener()
