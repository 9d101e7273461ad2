"""The listeners that a broker's settings define: their addresses, and the one for other brokers.

The rules are those of KafkaConfig ``validateValues``, except that a broker that is alone in its cluster needs no listener for
other brokers, so that the one for clients may have any protocol.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ...base.config import Config
from ...base.settings import SettingError
from ..settings import BrokerSettings
from .addresses import ListenerAddress, check_listener_name, configured_listeners, inter_broker_listener


@dataclasses.dataclass(frozen=True, slots=True)
class ListenerPlan:
    """The listeners that the settings ask for."""

    endpoints: list[ListenerAddress]
    """Where to listen."""
    named: list[ListenerAddress]
    """What advertised.listeners has; empty where it is not set."""
    inter_broker: str
    """The name of the listener that brokers connect to."""
    control_plane: str
    """The name of the one that the controller connects to; ``inter_broker`` if control.plane.listener.name is not set."""


def plan_listeners(config: Config, *, is_alone: bool, of_controller: Collection[str] = ()) -> ListenerPlan:
    """The plan that the settings ask for; ``is_alone``: no other broker can be in the cluster. Raises SettingError.

    ``of_controller`` names the listeners of the node's controller, which are none of the broker's.
    """
    settings = config.settings(BrokerSettings)
    _check_times(settings)
    endpoints, named = (
        [each for each in configured if each.name not in of_controller] for configured in configured_listeners(settings)
    )
    if not endpoints or (settings.advertised_listeners and not named):
        why = "There must be at least one broker advertised listener. Perhaps all listeners appear in controller.listener.names?"
        raise SettingError("listeners", settings.listeners, why)
    if settings.inter_broker_listener_name is not None and config.is_given("security.inter.broker.protocol"):
        why = "only one of inter.broker.listener.name and security.inter.broker.protocol may be given"
        raise SettingError("inter.broker.listener.name", settings.inter_broker_listener_name, why)
    advertised = named or endpoints
    inter_broker = inter_broker_listener(settings, advertised)
    if not is_alone and inter_broker not in {endpoint.name for endpoint in endpoints}:
        why = "no listener has it: brokers could not reach this one"
        raise SettingError("security.inter.broker.protocol", inter_broker, why)
    control_plane = inter_broker
    if settings.control_plane_listener_name is not None:
        control_plane = settings.control_plane_listener_name.upper()
        check_listener_name("control.plane.listener.name", control_plane, advertised)
        if control_plane == inter_broker:
            why = "it has to differ from the listener that brokers use among themselves"
            raise SettingError("control.plane.listener.name", control_plane, why)
    return ListenerPlan(endpoints, named, inter_broker, control_plane)


def _check_times(settings: BrokerSettings) -> None:
    """Check that a refused client is told before its connection counts as idle. Raises SettingError."""
    delay, idle = settings.connection_failed_authentication_delay_ms, settings.connections_max_idle_ms
    if 0 <= idle <= delay:
        why = f"must be less than connections.max.idle.ms, which is {idle}"
        raise SettingError("connection.failed.authentication.delay.ms", str(delay), why)
