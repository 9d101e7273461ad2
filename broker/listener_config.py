"""The settings of one listener: those with its prefix over those of the whole broker (KIP-103).

``listener.name.<listener>.<mechanism>.<name>`` overrides ``listener.name.<listener>.<name>``, and that overrides
``<name>``; listener and mechanism are written in lower case. On a SASL_SSL listener ``ssl.client.auth`` counts with the
prefix only (KIP-684): earlier versions of Kafka asked for no client certificates there, and a file that sets it for other
listeners is to mean the same.
"""

from __future__ import annotations

from typing import TypeVar

from ..base.config import Config
from ..base.listener_names import LISTENER_PREFIX
from ..base.settings import SettingError, Settings

S = TypeVar("S", bound=Settings)

_PREFIXED_ONLY = {"SASL_SSL": ("ssl.client.auth",)}


class ListenerConfig:
    """The settings as they are at the time of each call, with what was changed at run time."""

    def __init__(self, config: Config, listener: str, security_protocol: str) -> None:
        self.config = config
        self.listener = listener
        """The listener's name."""
        self.security_protocol = security_protocol
        """One of Kafka's four."""
        self.prefix = f"{LISTENER_PREFIX}{listener.lower()}."

    def value(self, name: str, mechanism: str | None = None) -> str | None:
        """The text of a property, None where it is not given; ``mechanism`` is a SASL mechanism."""
        return self.properties(mechanism).get(name)

    def prefixed(self, name: str, mechanism: str | None = None) -> str | None:
        """The text given with exactly this prefix, that of the mechanism if one is named."""
        return self.config.effective().get(self._prefix(mechanism) + name)

    def settings(self, settings_class: type[S], mechanism: str | None = None) -> S:
        """One class of settings as they are for this listener. Raises SettingError, which names the property with its prefix."""
        try:
            return settings_class.from_properties(self.properties(mechanism))
        except SettingError as error:
            for prefix in (self._prefix(mechanism), self.prefix):
                if prefix + error.name in self.config.effective():
                    raise SettingError(prefix + error.name, error.value, error.why) from None
            raise

    def properties(self, mechanism: str | None = None) -> dict[str, str]:
        """The properties given for this listener, by names without prefix."""
        given = self.config.effective()
        found = {name: value for name, value in given.items() if not name.startswith(LISTENER_PREFIX)}
        for name in _PREFIXED_ONLY.get(self.security_protocol, ()):
            found.pop(name, None)
        for prefix in (self.prefix, self._prefix(mechanism)):
            found |= {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}
        return found

    def _prefix(self, mechanism: str | None) -> str:
        return self.prefix if mechanism is None else f"{self.prefix}{mechanism.lower()}."
