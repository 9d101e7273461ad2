"""The SASL mechanisms of listeners: authentication of clients, and of this broker at other brokers.

A mechanism is made once for a listener, at the start, from the settings with that listener's and mechanism's prefix; a wrong
setting ends the start. ``MECHANISMS`` has all of them, by name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...base.seams import Workers
from ...base.settings import SettingError
from ...handlers.node_services import NodeServices
from ...security.jaas import PLAIN_MODULE, SCRAM_MODULE
from ...security.oauthbearer import OAUTHBEARER
from ...security.plain import PLAIN, PlainClient, PlainServer, plain_users
from ...security.principal import USER, Principal
from ...security.sasl import SaslClient, SaslServer
from ...security.scram import ScramMechanism, UnusableCredential
from ...security.scram_exchange import ScramClient, ScramServer, ScramUser
from ..listener_config import ListenerConfig
from ..settings import BrokerSettings
from .sasl_mechanism import Mechanism, identity, jaas_property, login_module, refuse_callbacks
from .sasl_settings import DEFAULT_MECHANISM, SaslSettings

logger = logging.getLogger(__name__)


class PlainMechanism:
    """Users with passwords in the JAAS configuration."""

    background = None

    def __init__(self, config: ListenerConfig) -> None:
        refuse_callbacks(config, PLAIN)
        module = login_module(config, PLAIN, PLAIN_MODULE)
        if module is None:
            raise SettingError(
                jaas_property(config, PLAIN), "null", f'{PLAIN} has its users there: user_NAME="PASSWORD"'
            )
        self._module = module
        self._users = plain_users(module)

    def server(self, services: NodeServices) -> SaslServer:
        return PlainServer(self._users)

    async def client(self, workers: Workers) -> SaslClient:
        return PlainClient(*identity(self._module))


class ScramUsers:
    """Users with credentials in the cluster's store, and delegation tokens, for one of the two SCRAM mechanisms."""

    background = None

    def __init__(self, mechanism: ScramMechanism, config: ListenerConfig) -> None:
        refuse_callbacks(config, mechanism.sasl_name)
        self._mechanism = mechanism
        self._module = login_module(config, mechanism.sasl_name, SCRAM_MODULE)
        self._unusable: dict[str, UnusableCredential] = {}  # by user, the credential that a log line has reported

    def server(self, services: NodeServices) -> SaslServer:
        return ScramServer(
            self._mechanism, lambda name: self._find(services, name), lambda name: self._find_token(services, name)
        )

    async def client(self, workers: Workers) -> SaslClient:
        return ScramClient(self._mechanism, *identity(self._module))

    def _find_token(self, services: NodeServices, token_id: str) -> ScramUser | None:
        passwords = services.token_passwords
        return None if passwords is None else passwords.scram_user(self._mechanism, token_id)

    def _find(self, services: NodeServices, name: str) -> ScramUser | None:
        stored = services.metadata.image.scram.get(name, {}).get(self._mechanism)
        if isinstance(stored, UnusableCredential):
            if self._unusable.get(name) != stored:  # once only: any client can cause this by naming the user
                self._unusable[name] = stored
                mechanism = self._mechanism.sasl_name
                logger.warning("The %s credential of user %r cannot be used: %s", mechanism, name, stored.reason)
            return None
        return None if stored is None else ScramUser(Principal(USER, name), stored)


def _scram_sha_256(config: ListenerConfig) -> Mechanism:
    return ScramUsers(ScramMechanism.SHA_256, config)


def _scram_sha_512(config: ListenerConfig) -> Mechanism:
    if config.listener in (name.upper() for name in config.config.settings(BrokerSettings).controller_listener_names):
        from .cluster_secret import secret_of  # few nodes have one

        secret = secret_of(config.config)
        if secret is not None:
            return secret
    return ScramUsers(ScramMechanism.SHA_512, config)


def _oauthbearer(config: ListenerConfig) -> Mechanism:
    from .oauthbearer import OAuthBearerMechanism

    return OAuthBearerMechanism(config)


MECHANISMS: dict[str, Callable[[ListenerConfig], Mechanism]] = {
    PLAIN: PlainMechanism,
    ScramMechanism.SHA_256.sasl_name: _scram_sha_256,
    ScramMechanism.SHA_512.sasl_name: _scram_sha_512,
    OAUTHBEARER: _oauthbearer,
}
"""By the name that clients give; each raises SettingError where its settings are wrong."""


def enabled_mechanisms(config: ListenerConfig) -> dict[str, Mechanism]:
    """Those of one listener, by name. Raises SettingError."""
    names = config.settings(SaslSettings).enabled_mechanisms
    for name in names:
        if name not in MECHANISMS:
            why = "GSSAPI (Kerberos) is not served" if name == DEFAULT_MECHANISM else f"{name} is not known"
            raise SettingError("sasl.enabled.mechanisms", ",".join(names), f"{why}; there are {', '.join(MECHANISMS)}")
    if not names:
        raise SettingError("sasl.enabled.mechanisms", "", f"listener {config.listener} needs one")
    return {name: MECHANISMS[name](config) for name in names}
