"""TLS and SASL on the connections that this broker opens to others: how each side authenticates the other."""

from __future__ import annotations

import dataclasses
import math

import trio

from ...base.network import Connection
from ...base.seams import Workers
from ...base.settings import SettingError
from ...replication.broker_client import Secure, SecuredConnection
from ..listener_config import ListenerConfig

_PART_OF_A_SESSION = 0.9
"""The part of its lifetime after which a session is replaced by another connection; Kafka's clients take 85 to 95 % at random."""


@dataclasses.dataclass(frozen=True, slots=True)
class PeerListener:
    """The listener of other brokers that this one connects to."""

    name: str
    secure: Secure | None = None
    """Makes TLS and SASL on a connection; None for PLAINTEXT."""


def peer_security(
    config: ListenerConfig, workers: Workers, mechanism_setting: str = "sasl.mechanism.inter.broker.protocol"
) -> Secure | None:
    """Makes TLS and SASL on connections to other nodes' listener of this name; None for PLAINTEXT. Raises SettingError.

    ``mechanism_setting`` names the setting that says which SASL mechanism is used.
    """
    shake_hands = _tls(config, workers) if config.security_protocol in ("SSL", "SASL_SSL") else None
    converse = (
        _sasl(config, workers, mechanism_setting)
        if config.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")
        else None
    )
    if shake_hands is None or converse is None:
        return shake_hands or converse

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        tls = (await shake_hands(connection, host)).connection
        try:
            return await converse(tls, host)
        except BaseException:
            tls.close()
            raise

    return secure


def _tls(config: ListenerConfig, workers: Workers) -> Secure:
    from .tls_transport import TlsPeers  # OpenSSL is slow to load

    peers = TlsPeers(config, workers)

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        return SecuredConnection(await peers.secure(connection, host))

    return secure


def _sasl(config: ListenerConfig, workers: Workers, mechanism_setting: str) -> Secure:
    """Authentication by a mechanism, which must be one that the listener accepts, too."""
    from ...security.sasl import AuthenticationError
    from .sasl_client import authenticate
    from .sasl_mechanisms import enabled_mechanisms
    from .sasl_settings import SaslSettings

    mechanisms = enabled_mechanisms(config)
    settings = config.settings(SaslSettings)
    is_of_brokers = mechanism_setting == "sasl.mechanism.inter.broker.protocol"
    wanted = settings.inter_broker_mechanism if is_of_brokers else settings.controller_mechanism
    name = wanted or next(iter(mechanisms))
    if name not in mechanisms:
        why = "it must be among those of sasl.enabled.mechanisms"
        raise SettingError(mechanism_setting, name, why)

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        began = trio.current_time()
        try:
            client = await mechanisms[name].client(workers)
        except AuthenticationError as error:
            raise OSError(str(error)) from None
        lifetime_ms = await authenticate(connection, name, client)
        return SecuredConnection(
            connection, began + lifetime_ms / 1000 * _PART_OF_A_SESSION if lifetime_ms else math.inf
        )

    return secure
