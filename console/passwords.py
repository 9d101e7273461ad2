"""Password checks of the login, by PLAIN and SCRAM as on the broker's SASL listeners.

Both sides of an exchange are in this process: the listener's (``SaslServer``), which decides, and a client's, which has the
password. So users, credentials and comparisons are those of the listeners, as they are set at the time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..base.config import Config
from ..base.seams import Workers
from ..base.settings import SettingError
from ..broker.auth.sasl_mechanisms import enabled_mechanisms
from ..broker.auth.sasl_settings import SaslSettings
from ..broker.listener_config import ListenerConfig
from ..broker.listeners.addresses import client_listeners
from ..broker.settings import BrokerSettings
from ..handlers.services import Services
from ..security.plain import PLAIN, PlainClient
from ..security.sasl import Authenticated, AuthenticationError, SaslClient, SaslServer
from ..security.scram import SCRAM_MECHANISMS
from ..security.scram_exchange import ScramClient

_WITH_PASSWORDS = (PLAIN, *SCRAM_MECHANISMS)


class Passwords:
    """Those of one broker's users."""

    def __init__(self, config: Config, workers: Workers) -> None:
        self._config = config
        self._workers = workers

    @property
    def are_there(self) -> bool:
        """Whether a listener lets users in by a password. Raises SettingError."""
        return any(True for _ in self._listeners())

    def _listeners(self) -> Iterator[tuple[ListenerConfig, str]]:
        """Each listener of clients with each of its mechanisms that has passwords."""
        for endpoint in client_listeners(self._config.settings(BrokerSettings)):
            if endpoint.security_protocol.startswith("SASL_"):
                listener = ListenerConfig(self._config, endpoint.name, endpoint.security_protocol)
                for name in listener.settings(SaslSettings).enabled_mechanisms:
                    if name in _WITH_PASSWORDS:
                        yield listener, name

    async def authenticate(self, services: Services, user: str, password: str) -> tuple[Authenticated, int]:
        """Who that is, and after how many milliseconds a listener would ask again, 0 for never.

        Raises AuthenticationError where no listener lets the user in.
        """
        why = AuthenticationError("there is no listener with passwords")
        for listener, name in list(self._listeners()):
            try:
                server = enabled_mechanisms(listener)[name].server(services)
                outcome = await self._exchange(server, _client(name, user, password))
                return outcome, listener.settings(SaslSettings, name).connections_max_reauth_ms
            except AuthenticationError as error:
                why = error
            except SettingError as error:
                why = AuthenticationError(str(error))
        raise why

    async def _exchange(self, server: SaslServer, client: SaslClient) -> Authenticated:
        challenge = b""
        while server.outcome is None:
            # In a worker, because SCRAM salts the password, which takes milliseconds.
            token = await self._workers.run(client.respond, challenge)
            if token is None:
                raise AuthenticationError("the exchange has ended without an outcome")
            challenge = server.respond(token)
        return server.outcome

    def known_of(self, services: Services, user: str) -> Hashable:
        """What the broker has of a user's passwords: another answer later means that a session is to end."""
        stored = services.metadata.image.scram.get(user, {})
        return tuple(
            listener.value("sasl.jaas.config", name) if name == PLAIN else stored.get(SCRAM_MECHANISMS[name])
            for listener, name in self._listeners()
        )


def _client(mechanism: str, user: str, password: str) -> SaslClient:
    if mechanism == PLAIN:
        return PlainClient(user, password)
    return ScramClient(SCRAM_MECHANISMS[mechanism], user, password)
