"""The listeners of a controller: binding, advertised addresses, and the security of connections to controllers.

They are those of ``listeners`` that ``controller.listener.names`` has. A broker in the same process neither serves nor advertises
them. Source: KafkaConfig ``effectiveAdvertisedControllerListeners``, ControllerServer, SocketServer.
"""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.config import Config
from ..base.network import Network
from ..base.seams import Workers
from ..base.settings import SettingError
from ..controller.quorum.settings import QuorumSettings
from ..controller.raft.voter_set import Endpoints, ListenerEndpoint
from .auth.peer_security import PeerListener, peer_security
from .directories.own_quorum import IN_PROCESS_HOST, IN_PROCESS_LISTENER, IN_PROCESS_PORT
from .identity import static_voters
from .listener_config import ListenerConfig
from .listeners.addresses import ListenerAddress, configured_listeners, listener_protocols
from .listeners.bound_listeners import bind_listener
from .listeners.listener_security import ServedListener, listener_security
from .settings import BrokerSettings

if TYPE_CHECKING:
    from .formation.gate import RespondTo

_EVERY_ADDRESS = ("", "0.0.0.0", "::")


def controller_names(config: Config) -> list[str]:
    """The names of the controllers' listeners, in their order."""
    return [name.upper() for name in config.settings(BrokerSettings).controller_listener_names]


def controllers_listener(config: Config, workers: Workers) -> PeerListener:
    """How a node reaches the controllers: by the first of controller.listener.names. Raises SettingError."""
    if not controller_names(config):
        return PeerListener(IN_PROCESS_LISTENER)
    name, protocols = controller_names(config)[0], listener_protocols(config.settings(BrokerSettings))
    if name not in protocols:
        why = (
            f"Controller listener with name {name} defined in controller.listener.names not found in "
            "listener.security.protocol.map. The map needs an entry for each controller listener if it is set, or if any "
            "listener has another protocol than PLAINTEXT"
        )
        raise SettingError("controller.listener.names", name, why)
    own = ListenerConfig(config, name, protocols[name])
    return PeerListener(name, peer_security(own, workers, "sasl.mechanism.controller.protocol"))


def advertised_to_controllers(config: Config) -> list[ListenerAddress]:
    """Where this controller says that it is, in the order of controller.listener.names. Raises SettingError.

    An empty host is the machine's name, which is looked up later. For the first listener the node's own entry in
    ``controller.quorum.voters`` goes before that.
    """
    settings = config.settings(BrokerSettings)
    bound, named = ({each.name: each for each in endpoints} for endpoints in configured_listeners(settings))
    found = []
    for place, name in enumerate(controller_names(config)):
        endpoint = named.get(name) or bound[name]
        if endpoint.host in _EVERY_ADDRESS:
            voter = static_voters(config.settings(QuorumSettings)).get(settings.node_id) if place == 0 else None
            host, port = ("", endpoint.port) if voter is None else voter
            endpoint = dataclasses.replace(endpoint, host=host, port=port)
        found.append(endpoint)
    return found


class ControllerListeners:
    """The listeners of one controller."""

    def __init__(self, config: Config, network: Network, workers: Workers, respond: RespondTo | None = None) -> None:
        """``respond``: to nodes that form a cluster or join one; by default as a controller that is in one."""
        self.config = config
        """The controller's own, which its dynamic configs change."""
        self._respond = respond
        self._network = network
        self._workers = workers
        self.served: list[ServedListener] = []
        self.advertised: Sequence[ListenerAddress] = ()
        """Where other nodes are told to connect to."""
        config.checks.append(self._check)
        config.on_change.append(self._follow)

    @property
    def endpoints(self) -> Endpoints:
        """``advertised``, as a Raft node knows it."""
        return tuple(ListenerEndpoint(each.name, each.host, each.port) for each in self.advertised)

    async def bind(self) -> None:
        """Bind all, or none; without any the controller is reached in its own process. Raises SettingError, CannotListenError."""
        if not controller_names(self.config):
            self.advertised = [ListenerAddress(IN_PROCESS_LISTENER, IN_PROCESS_HOST, IN_PROCESS_PORT, "PLAINTEXT")]
            return
        configured, _ = configured_listeners(self.config.settings(BrokerSettings))
        advertised = advertised_to_controllers(self.config)
        from .formation.gate import say_formed, with_formation  # a controller without a listener needs none of it

        names = {each.name for each in advertised}
        try:
            for endpoint in configured:
                if endpoint.name in names:
                    own = ListenerConfig(self.config, endpoint.name, endpoint.security_protocol)
                    security = listener_security(own, self._workers, is_inter_broker=False)
                    security = with_formation(security, self._respond or say_formed)
                    self.served.append(
                        await bind_listener(self.config, self._network, endpoint, security, is_inter_broker=False)
                    )
        except BaseException:
            self.close()
            raise
        ports = {served.name: served.endpoint.port for served in self.served}
        host = "" if all(each.host for each in advertised) else await self._workers.run(socket.getfqdn)
        self.advertised = [
            dataclasses.replace(each, host=each.host or host, port=each.port or ports[each.name]) for each in advertised
        ]

    def _check(self, changed: Config) -> None:
        for served in self.served:
            if served.security.check is not None:
                served.security.check(changed)

    def _follow(self) -> None:
        for served in self.served:
            if served.security.follow is not None:
                served.security.follow()

    def close(self) -> None:
        """Accept no more connections; safe to call twice."""
        for served in self.served:
            served.listener.close()
