"""The listeners of one broker: bound at the start, changed while it runs, closed at the end."""

from __future__ import annotations

import dataclasses
import errno
import logging
from collections.abc import Collection

from ...base.addresses import join_host_port
from ...base.config import Config
from ...base.network import Network
from ...base.seams import Workers
from ...base.settings import SettingError
from ..auth.peer_security import PeerListener, peer_security
from ..listener_config import ListenerConfig
from ..settings import BrokerSettings
from .addresses import ListenerAddress, advertised_endpoints
from .listener_plan import ListenerPlan, plan_listeners
from .listener_security import ListenerSecurity, ServedListener, listener_security

logger = logging.getLogger(__name__)


class CannotListenError(Exception):
    """An address cannot be bound; ``str()`` is one line for the user, with the option or setting that chooses the address."""

    def __init__(self, host: str, port: int, error: OSError, chosen_by: str) -> None:
        self.may_pass = error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
        """Whether another try may succeed: the port may become free, or the network interface may come up."""
        in_use = f"the port is in use; choose another with {chosen_by}"
        why = in_use if error.errno == errno.EADDRINUSE else error.strerror
        super().__init__(f"cannot listen on {join_host_port(host, port)}: {why}")


async def bind_listener(
    config: Config, network: Network, endpoint: ListenerAddress, security: ListenerSecurity, *, is_inter_broker: bool
) -> ServedListener:
    """Bind one listener. Raises CannotListenError."""
    backlog = config.settings(BrokerSettings).socket_listen_backlog_size
    try:
        listener = await network.listen(endpoint.host, endpoint.port, backlog)
    except OSError as error:
        raise CannotListenError(endpoint.host, endpoint.port, error, "--listen or listeners") from None
    return ServedListener(dataclasses.replace(endpoint, port=listener.port), listener, security, is_inter_broker)


class BoundListeners:
    """The listeners of one broker, in the order in which they are set."""

    def __init__(self, config: Config, network: Network, workers: Workers) -> None:
        self._config = config
        self._network = network
        self._workers = workers
        self._is_alone = False
        self._of_controller: Collection[str] = ()
        self._is_closed = False
        self.served: list[ServedListener] = []
        self.advertised: list[ListenerAddress] = []
        """The addresses that clients are told."""
        self.inter_broker = PeerListener("")
        """The listener that brokers use among themselves; it does not change after the start."""
        self.control_plane = PeerListener("")
        """The listener that the controller uses, likewise."""

    def check(self, config: Config) -> ListenerPlan:
        """The listeners that ``config`` asks for. Raises SettingError."""
        plan = plan_listeners(config, is_alone=self._is_alone, of_controller=self._of_controller)
        if self.served and not self._is_alone and plan.inter_broker != self.inter_broker.name:
            why = f"brokers reach this one at {self.inter_broker.name}: it is needed until a restart"
            raise SettingError("listeners", config.settings(BrokerSettings).listeners, why)
        return plan

    def securities(self, plan: ListenerPlan, config: Config) -> dict[str, ListenerSecurity]:
        """By name, the security of the listeners in ``plan`` that are not bound yet. Raises SettingError."""
        bound, found = self.names(), {}
        for endpoint in plan.endpoints:
            if endpoint.name not in bound:
                own = ListenerConfig(config, endpoint.name, endpoint.security_protocol)
                is_inter_broker = endpoint.name == plan.inter_broker
                found[endpoint.name] = listener_security(own, self._workers, is_inter_broker=is_inter_broker)
        return found

    def check_security(self, config: Config, names: Collection[str]) -> None:
        """Check that the bound listeners of these names can use the settings in ``config``. Raises SettingError."""
        for served in self.served:
            if served.name in names and served.security.check is not None:
                served.security.check(config)

    def follow(self) -> None:
        """Have the bound listeners use the settings as they are now."""
        for served in self.served:
            if served.security.follow is not None:
                served.security.follow()

    async def bind(self, *, is_alone: bool, of_controller: Collection[str] = ()) -> None:
        """Bind all listeners, or none. Raises SettingError, CannotListenError. See ``plan_listeners``."""
        self._is_alone, self._of_controller = is_alone, of_controller
        plan = self.check(self._config)
        securities = self.securities(plan, self._config)
        self.inter_broker = self._peer_listener(plan, plan.inter_broker)
        self.control_plane = self.inter_broker
        if plan.control_plane != plan.inter_broker:
            self.control_plane = self._peer_listener(plan, plan.control_plane)
        try:
            for endpoint in plan.endpoints:
                self.served.append(await self._bind(endpoint, securities[endpoint.name]))
        except BaseException:
            self.close()
            raise
        self._advertise(plan)

    async def update(self) -> tuple[list[ServedListener], list[ServedListener]]:
        """Apply what is set now; returns the listeners that were added and removed. Raises SettingError.

        What cannot be bound is logged and left out.
        """
        plan = self.check(self._config)
        securities = self.securities(plan, self._config)
        names = {endpoint.name for endpoint in plan.endpoints}
        removed = [served for served in self.served if served.name not in names]
        for served in removed:
            logger.info("The listener %s is closed", served.endpoint)
            served.listener.close()
        known = {served.name: served for served in self.served if served.name in names}
        added = []
        for endpoint in plan.endpoints:
            if endpoint.name not in known:
                try:
                    known[endpoint.name] = await self._bind(endpoint, securities[endpoint.name])
                except CannotListenError as error:
                    logger.error("Cannot listen at %s: %s", endpoint.name, error)
                    continue
                added.append(known[endpoint.name])
                logger.info("Listening at %s", known[endpoint.name].endpoint)
        self.served = [known[endpoint.name] for endpoint in plan.endpoints if endpoint.name in known]
        if self._is_closed:
            self.close()  # the broker stops, and binding has waited meanwhile: what it bound would stay open
        self._advertise(plan)
        return added, removed

    def _peer_listener(self, plan: ListenerPlan, name: str) -> PeerListener:
        protocol = {endpoint.name: endpoint.security_protocol for endpoint in plan.endpoints}.get(name)
        if protocol is None:
            return PeerListener(name)
        return PeerListener(name, peer_security(ListenerConfig(self._config, name, protocol), self._workers))

    def _advertise(self, plan: ListenerPlan) -> None:
        bound = [served.endpoint for served in self.served]
        named = [endpoint for endpoint in plan.named if endpoint.name in self.names()]
        self.advertised = advertised_endpoints(bound, named, "127.0.0.1")

    async def _bind(self, endpoint: ListenerAddress, security: ListenerSecurity) -> ServedListener:
        is_inter_broker = endpoint.name == self.inter_broker.name
        return await bind_listener(self._config, self._network, endpoint, security, is_inter_broker=is_inter_broker)

    def names(self) -> set[str]:
        return {served.name for served in self.served}

    def close(self) -> None:
        """Accept no more connections; safe to call twice."""
        self._is_closed = True
        for served in self.served:
            served.listener.close()
