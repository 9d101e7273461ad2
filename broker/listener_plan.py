"""Which listeners a broker has, by its settings: where they are bound, what each asks for, by which ones brokers meet.

The rules are those of KafkaConfig ``validateValues``, with one thing less: a broker that is alone in its cluster needs no
listener for other brokers, so the one for clients may have any protocol.
"""

from __future__ import annotations

import dataclasses

from ..base.config import Config
from ..base.seams import Workers
from ..base.settings import SettingError
from ..replication.broker_client import Secure
from .listener_config import ListenerConfig
from .listener_security import ListenerSecurity, listener_security
from .listeners import Endpoint, configured_listeners, inter_broker_listener
from .peer_security import peer_security
from .settings import BrokerSettings


@dataclasses.dataclass(frozen=True, slots=True)
class PeerListener:
    """A listener at which other brokers are reached, by its name; ``secure`` is what connections to it go through first."""

    name: str
    secure: Secure | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ListenerPlan:
    """``securities`` belong to ``endpoints``, one each. ``named``: what advertised.listeners has, maybe nothing.

    ``control_plane``: where the controller reaches brokers, which is ``inter_broker`` where nothing else is said.
    """

    endpoints: list[Endpoint]
    securities: list[ListenerSecurity]
    named: list[Endpoint]
    inter_broker: PeerListener
    control_plane: PeerListener


def plan_listeners(config: Config, workers: Workers, *, is_alone: bool) -> ListenerPlan:
    """Raises SettingError. ``is_alone``: no other broker can be in the cluster."""
    settings = config.settings(BrokerSettings)
    _check_times(settings)
    endpoints, named = configured_listeners(settings)
    protocols = {endpoint.name: endpoint.security_protocol for endpoint in endpoints}
    if settings.inter_broker_listener_name is not None and config.is_given("security.inter.broker.protocol"):
        why = "only one of inter.broker.listener.name and security.inter.broker.protocol may be given"
        raise SettingError("inter.broker.listener.name", settings.inter_broker_listener_name, why)
    advertised = named or endpoints
    name = inter_broker_listener(settings, advertised)
    if not is_alone and name not in protocols:
        raise SettingError(
            "security.inter.broker.protocol", name, "no listener has it: brokers could not reach this one"
        )
    inter_broker = _peer_listener(config, name, protocols, workers)
    control_plane = inter_broker
    if settings.control_plane_listener_name is not None:
        wanted = settings.control_plane_listener_name
        if wanted.upper() not in {endpoint.name for endpoint in advertised}:
            raise SettingError("control.plane.listener.name", wanted, "no such name is among the listeners")
        if wanted.upper() == name:
            raise SettingError(
                "control.plane.listener.name", wanted, "it is to be another one than that of the brokers"
            )
        control_plane = _peer_listener(config, wanted.upper(), protocols, workers)
    securities = [
        listener_security(
            _config_of(config, each.name, protocols), workers, is_inter_broker=each.name == inter_broker.name
        )
        for each in endpoints
    ]
    return ListenerPlan(endpoints, securities, named, inter_broker, control_plane)


def _check_times(settings: BrokerSettings) -> None:
    """A client that is refused is told before it counts as idle. Raises SettingError."""
    delay, idle = settings.connection_failed_authentication_delay_ms, settings.connections_max_idle_ms
    if 0 <= idle <= delay:
        why = f"must be less than connections.max.idle.ms, which is {idle}"
        raise SettingError("connection.failed.authentication.delay.ms", str(delay), why)


def _peer_listener(config: Config, name: str, protocols: dict[str, str], workers: Workers) -> PeerListener:
    if name not in protocols:
        return PeerListener(name)
    return PeerListener(name, peer_security(_config_of(config, name, protocols), workers))


def _config_of(config: Config, name: str, protocols: dict[str, str]) -> ListenerConfig:
    return ListenerConfig(config, name, protocols[name])
