"""What a broker is given at its start and what all of its parts share: configuration, network, time, threads, chance."""

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
    """``inter_broker`` is the listener that brokers reach each other by, ``control_plane`` that at which a controller does."""

    config: Config
    network: Network
    clock: Clock
    workers: Workers
    randomness: random.Random
    served: ServedApis
    inter_broker: PeerListener
    control_plane: PeerListener
