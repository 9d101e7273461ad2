"""What a broker is given at its start, and all of its parts share: configuration, network, clock, threads, randomness."""

from __future__ import annotations

import dataclasses
import random

from ..base.config import Config
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..base.tcp import TcpNetwork
from ..handlers.table import ServedApis
from .peer_security import PeerListener
from .settings import BrokerSettings


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """``inter_broker`` is the listener that brokers use among themselves, ``control_plane`` that for the controller."""

    config: Config
    network: Network
    clock: Clock
    workers: Workers
    randomness: random.Random
    served: ServedApis
    inter_broker: PeerListener
    control_plane: PeerListener


def tcp_network(config: Config, workers: Workers) -> TcpNetwork:
    """The machine's network, with the socket buffers that the settings ask for."""
    settings = config.settings(BrokerSettings)
    return TcpNetwork(workers, settings.socket_send_buffer_bytes, settings.socket_receive_buffer_bytes)
