"""What a broker is given at its start and what all of its parts share: configuration, network, time, threads, chance."""

from __future__ import annotations

import dataclasses
import random

from ..base.config import Config
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..handlers.table import ServedApis
from ..replication.broker_client import Secure


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """``inter_broker_listener``: the name of the listener that brokers reach one another by; ``secure_peer``: what a connection
    to it goes through first, None where it is PLAINTEXT.
    """

    config: Config
    network: Network
    clock: Clock
    workers: Workers
    randomness: random.Random
    served: ServedApis
    inter_broker_listener: str
    secure_peer: Secure | None = None
