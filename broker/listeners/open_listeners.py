"""A warning about listeners that clients use without authentication."""

from __future__ import annotations

import ipaddress
import logging

from ...base.addresses import join_host_port
from ...base.config import Config
from ..listener_config import ListenerConfig
from ..settings import BrokerSettings
from .addresses import ListenerAddress, client_listeners, configured_listeners

logger = logging.getLogger(__name__)


def warn_of_open_listeners(config: Config) -> None:
    """One line for each listener beyond loopback that asks for no authentication. Raises SettingError."""
    listeners, _ = configured_listeners(config.settings(BrokerSettings))
    for endpoint in listeners:
        if not is_on_loopback(endpoint.host) and not _asks(endpoint, config):
            logger.warning(
                "%s listens at %s without authentication: any client that reaches it is User:ANONYMOUS. Use SASL, or client "
                "certificates (ssl.client.auth=required)",
                endpoint.name,
                join_host_port(endpoint.host or "*", endpoint.port),
            )


def asks_everywhere(config: Config) -> bool:
    """Whether every listener of clients asks for authentication. Raises SettingError."""
    return all(_asks(endpoint, config) for endpoint in client_listeners(config.settings(BrokerSettings)))


def is_on_loopback(host: str) -> bool:
    """Whether the address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False  # a host name, or an empty text, which stands for every address


def _asks(endpoint: ListenerAddress, config: Config) -> bool:
    if endpoint.security_protocol.startswith("SASL_"):
        return True
    listener = ListenerConfig(config, endpoint.name, endpoint.security_protocol)
    return endpoint.security_protocol == "SSL" and listener.value("ssl.client.auth") == "required"
