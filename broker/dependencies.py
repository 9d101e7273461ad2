"""The dependencies handed to a broker and shared by its parts: configuration, network, clock, threads, randomness."""

from __future__ import annotations

import dataclasses
import random

from ..base.addresses import split_host_port
from ..base.config import Config
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..base.settings import SettingError
from ..base.tcp import TcpNetwork
from ..handlers.table import ServedApis
from .auth.peer_security import PeerListener
from .listeners.addresses import configured_listeners
from .settings import BrokerSettings


@dataclasses.dataclass(frozen=True)
class BrokerDependencies:
    """What a broker is given at its start."""

    config: Config
    network: Network
    clock: Clock
    workers: Workers
    randomness: random.Random
    served: ServedApis
    inter_broker: PeerListener
    """The listener that brokers use among themselves."""
    control_plane: PeerListener
    """The listener that the controller uses; the same one where no other is set."""


def tcp_network(config: Config, workers: Workers) -> Network:
    """The machine's network, with the socket buffers that the settings ask for. Raises SettingError."""
    settings = config.settings(BrokerSettings)
    network = TcpNetwork(workers, settings.socket_send_buffer_bytes, settings.socket_receive_buffer_bytes)
    if settings.machine_listener is None:
        return network
    from ..base.shared_listener import MachineNetwork  # few brokers share a machine

    try:
        shared = split_host_port(settings.machine_listener)
    except ValueError as error:
        raise SettingError("machine.listener", settings.machine_listener, str(error)) from None
    listeners, _ = configured_listeners(settings)
    return MachineNetwork(network, listeners[0].port, shared)
