"""``ToldAccess``: whom this broker tells what only it knows (DescribeInside), and how it proves to others that it is a broker.

With an authorizer nobody comes here who has no CLUSTER_ACTION. Without one, any client could call itself a broker, so one of
these has to hold of the inter-broker listener: who connects there is authenticated; it is on loopback; it is not where clients
connect, since they have a listener of their own; or who asks has the cluster's secret. The last is proved by HMAC-SHA256 over a
challenge, which is made for one connection and one run of the broker, so that it need not be remembered.
"""

from __future__ import annotations

import hmac
import secrets

from ...base.config import Config
from ...base.errors import ErrorCode
from ...broker.auth.cluster_secret import secret_of
from ...broker.listeners.addresses import client_listeners
from ...broker.listeners.open_listeners import is_on_loopback
from ...broker.settings import BrokerSettings
from ...handlers.connection_context import ConnectionContext
from ...security.principal import ANONYMOUS
from ...wire.messages.describe_inside import DescribeInsideResponse

_PURPOSE = "DescribeInside"
_REFUSED = "clients reach its listener as brokers do, and nothing there identifies brokers; see docs/security.md"


class ToldAccess:
    """Made by a worker: a key is derived. Raises SettingError where the file of the secret cannot be read any more."""

    def __init__(self, config: Config, node_id: int, *, has_authorizer: bool) -> None:
        self._config = config
        self._node_id = node_id
        self._has_authorizer = has_authorizer
        self._of_this_run = secrets.token_bytes(32)
        secret = secret_of(config)
        self._key = None if secret is None else secret.key(_PURPOSE)

    def refusal(self, connection: ConnectionContext, proof: bytes) -> DescribeInsideResponse | None:
        """The answer to who is not taken for a broker; None for who is. ``connection`` is of the inter-broker listener."""
        if self._has_authorizer or connection.principal != ANONYMOUS or self._is_for_brokers(connection.listener):
            return None
        refused = DescribeInsideResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=f"it reports to brokers only: {_REFUSED}"
        )
        if self._key is not None:
            refused.challenge = _mac(self._of_this_run, connection.peer.encode())
            if proof and hmac.compare_digest(proof, _proof(self._key, self._node_id, refused.challenge)):
                return None
        return refused

    def proof(self, broker: int, challenge: bytes) -> bytes | None:
        """The proof for another broker that this one has the secret; None where there is none."""
        return None if self._key is None else _proof(self._key, broker, challenge)

    def _is_for_brokers(self, inter_broker: str) -> bool:
        """Whether only brokers, or only programs of this machine, are to be expected at the listener."""
        settings = self._config.settings(BrokerSettings)
        listeners, control_plane = client_listeners(settings), settings.control_plane_listener_name
        not_of_clients = {inter_broker, *([] if control_plane is None else [control_plane.upper()])}
        if {each.name for each in listeners} - not_of_clients:
            return True
        if settings.machine_listener is not None:
            return False  # clients come by the machine's address as well
        return all(is_on_loopback(each.host) for each in listeners if each.name == inter_broker)


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _proof(key: bytes, broker: int, challenge: bytes) -> bytes:
    return _mac(key, broker.to_bytes(4) + challenge)
