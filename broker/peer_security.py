"""How this broker shows other brokers who it is, and has them show who they are, on the connections that it opens."""

from __future__ import annotations

from ..base.settings import SettingError
from ..replication.broker_client import Secure
from .listener_config import ListenerConfig


def peer_security(config: ListenerConfig) -> Secure | None:
    """What a connection to another broker's listener of this name goes through; None for PLAINTEXT. Raises SettingError."""
    if config.security_protocol == "PLAINTEXT":
        return None
    why = f"{config.listener} is {config.security_protocol}, and brokers reach one another by PLAINTEXT only"
    raise SettingError("inter.broker.listener.name", config.listener, why)
