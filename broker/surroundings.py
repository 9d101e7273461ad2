"""What a broker is given at its start, and all of its parts share: configuration, network, clock, threads, randomness."""

from __future__ import annotations

import dataclasses
import random

from ..base.config import Config
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..handlers.table import ServedApis
from .peer_security import PeerListener


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
