"""The interface of a listener's SASL mechanism, and its JAAS text from the settings.

No part of the JAAS text is ever shown.

``sasl_mechanisms`` has the implementations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ...base.seams import Workers
from ...base.settings import SettingError
from ...handlers.node_services import NodeServices
from ...security.jaas import JaasError, LoginModule, parse_jaas
from ...security.sasl import AuthenticationError, SaslClient, SaslServer
from ..listener_config import ListenerConfig

_CALLBACKS = (
    "sasl.server.callback.handler.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
)


Background = Callable[[Workers], Awaitable[None]]


class Mechanism(Protocol):
    """One mechanism of one listener. ``background`` is a loop to run while it listens, or None."""

    @property
    def background(self) -> Background | None: ...

    def server(self, services: NodeServices) -> SaslServer:
        """This side of a client's authentication."""
        ...

    async def client(self, workers: Workers) -> SaslClient:
        """This broker's authentication at another broker. Raises AuthenticationError where it has no identity."""
        ...


def jaas_property(config: ListenerConfig, mechanism: str) -> str:
    """The property that a mechanism's JAAS configuration is read from."""
    return f"{config.prefix}{mechanism.lower()}.sasl.jaas.config"


def login_module(config: ListenerConfig, mechanism: str, module_name: str) -> LoginModule | None:
    """The login module of the JAAS configuration, if there is one. Raises SettingError, whose text has no part of it."""
    text = config.prefixed("sasl.jaas.config", mechanism)
    if text is None:
        return None
    name = jaas_property(config, mechanism)
    try:
        module = parse_jaas(text)
    except JaasError as error:
        raise SettingError(name, "[hidden]", str(error)) from None
    if module.name != module_name:
        # The name that is there may be a secret.
        raise SettingError(name, "[hidden]", f"the login module of {mechanism} is {module_name}")
    return module


def identity(module: LoginModule | None) -> tuple[str, str]:
    """This broker's user name and password at other brokers. Raises AuthenticationError where there are none."""
    options = module.options if module is not None else {}
    if "username" not in options or "password" not in options:
        raise AuthenticationError("this broker's sasl.jaas.config has no username and password for other brokers")
    return options["username"], options["password"]


def refuse_callbacks(config: ListenerConfig, mechanism: str, names: Sequence[str] = _CALLBACKS) -> None:
    """Raise SettingError where one of these settings names a Java class, because Java classes cannot be run here."""
    for name in names:
        if (given := config.value(name, mechanism)) is not None:
            raise SettingError(name, given, "Java classes cannot be run here")
