"""Listener addresses: ``NAME://HOST:PORT`` as Kafka writes them, several per broker, each with an advertised address."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Sequence

from ...base.addresses import join_host_port
from ...base.settings import SettingError
from ...base.wording import meant
from ..settings import BrokerSettings

_ADDRESS = re.compile(r"(?P<name>[^:/\s]+)://(?P<host>\[[0-9A-Fa-f:.%]*\]|[^:/\s]*):(?P<port>-?\d+)")
_SECURED = re.compile(r"\b(SSL|SASL_PLAINTEXT|SASL_SSL)://")
_ANY = ("", "0.0.0.0", "::")


@dataclasses.dataclass(frozen=True)
class ListenerAddress:
    """One named address."""

    name: str
    host: str
    port: int
    """In a listener 0 means any free one."""
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.name}://{join_host_port(self.host, self.port)}"


def parse_endpoints(setting_name: str, text: str, protocols: dict[str, str]) -> list[ListenerAddress]:
    """The endpoints of a ``listeners`` or ``advertised.listeners`` value. Raises SettingError."""
    endpoints: list[ListenerAddress] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _ADDRESS.fullmatch(item)
        if match is None or not 0 <= int(match["port"]) <= 65535:
            raise SettingError(setting_name, text, f"{item!r} is not NAME://HOST:PORT")
        name = match["name"].upper()
        if name not in protocols:
            raise SettingError(
                setting_name, text, f"listener.security.protocol.map does not name {name}{meant(name, protocols)}"
            )
        if name in {endpoint.name for endpoint in endpoints}:
            raise SettingError(setting_name, text, f"the name {name} is given twice")
        endpoints.append(ListenerAddress(name, match["host"].strip("[]"), int(match["port"]), protocols[name]))
    if not endpoints:
        raise SettingError(setting_name, text, "no address in it")
    if setting_name == "listeners":
        _check_ports(text, endpoints)
    return endpoints


def _check_ports(text: str, endpoints: Sequence[ListenerAddress]) -> None:
    """Two listeners may share a port where one has an IPv4 address and the other an IPv6 one (KIP-797). Raises SettingError."""
    by_port: dict[int, list[str]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint.host)
    for hosts in by_port.values():
        if len(hosts) > 1 and sorted(map(_ip_version, hosts)) != [4, 6]:
            raise SettingError("listeners", text, "two listeners share a port")


def _ip_version(host: str) -> int:
    """4 or 6; 0 for a host name."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def parse_protocol_map(text: str) -> dict[str, str]:
    """Listener name -> security protocol. Raises SettingError."""
    protocols = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = item.partition(":")
        if not separator or protocol.upper() not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise SettingError("listener.security.protocol.map", text, f"{item!r} is not NAME:PROTOCOL")
        protocols[name.upper()] = protocol.upper()
    return protocols


def listener_protocols(settings: BrokerSettings) -> dict[str, str]:
    """Listener name -> security protocol; controllers' listeners are PLAINTEXT where the map was left at its default.

    As in ``KafkaConfig.effectiveListenerSecurityProtocolMap``, only while no listener is named for TLS or SASL. Raises
    SettingError.
    """
    text = settings.listener_security_protocol_map
    protocols = parse_protocol_map(text)
    if text == BrokerSettings.declared["listener_security_protocol_map"].default and not _SECURED.search(
        settings.listeners.upper()
    ):
        for name in settings.controller_listener_names:
            protocols.setdefault(name.upper(), "PLAINTEXT")
    return protocols


def configured_listeners(settings: BrokerSettings) -> tuple[list[ListenerAddress], list[ListenerAddress]]:
    """What ``listeners`` has, and what ``advertised.listeners`` has (maybe nothing). Raises SettingError."""
    protocols = listener_protocols(settings)
    listeners = parse_endpoints("listeners", settings.listeners, protocols)
    advertised: list[ListenerAddress] = []
    if settings.advertised_listeners:
        advertised = parse_endpoints("advertised.listeners", settings.advertised_listeners, protocols)
        names = {endpoint.name for endpoint in listeners}
        for endpoint in advertised:
            if endpoint.name not in names:
                why = f"{endpoint.name} is not among the listeners{meant(endpoint.name, names)}"
                raise SettingError("advertised.listeners", settings.advertised_listeners, why)
            if endpoint.host in _ANY:
                why = f"clients cannot connect to {endpoint.host or 'an empty host'}: name the host they reach"
                raise SettingError("advertised.listeners", settings.advertised_listeners, why)
    return listeners, advertised


def inter_broker_listener(settings: BrokerSettings, advertised: Sequence[ListenerAddress]) -> str:
    """The name of the listener that brokers use among themselves, the same on every broker. Raises SettingError.

    Where none is named it is the one called as security.inter.broker.protocol says, else the first for that protocol.
    """
    name = settings.inter_broker_listener_name
    if name is None:
        protocol = settings.security_inter_broker_protocol
        fitting = [endpoint.name for endpoint in advertised if endpoint.security_protocol == protocol]
        return protocol if protocol in fitting or not fitting else fitting[0]
    check_listener_name("inter.broker.listener.name", name, advertised)
    return name.upper()


def check_listener_name(setting_name: str, name: str, listeners: Sequence[ListenerAddress]) -> None:
    """Raises SettingError unless one of the listeners has the name, whatever the case of its letters."""
    names = [endpoint.name for endpoint in listeners]
    if name.upper() not in names:
        raise SettingError(setting_name, name, f"no such name is among the listeners{meant(name, names)}")


def advertised_endpoints(
    bound: Sequence[ListenerAddress], named: Sequence[ListenerAddress], local_host: str
) -> list[ListenerAddress]:
    """The addresses that clients are told (Metadata); ``local_host`` replaces a wildcard address.

    Where some are named, only those are told, as in Kafka. An advertised port 0 means the port that was bound.
    """
    ports = {endpoint.name: endpoint.port for endpoint in bound}
    if named:
        return [dataclasses.replace(each, port=each.port or ports[each.name]) for each in named]
    return [dataclasses.replace(each, host=local_host) if each.host in _ANY else each for each in bound]
