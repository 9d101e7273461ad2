"""Parsing and formatting of network addresses: ``HOST:PORT`` and ``[IPV6]:PORT``."""

from __future__ import annotations

import functools
import ipaddress

DEFAULT_PORT = 9092
HIGHEST_PORT = 65535


def join_host_port(host: str, port: int) -> str:
    """``host:port``, with brackets round an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_host_port(text: str, default_port: int | None = None) -> tuple[str, int]:
    """The parts of an address; with a default the port may be left out. Raises ValueError, whose text is one line."""
    is_host = bool(text) and not text.isdigit() and (":" not in text or text.endswith("]"))
    if is_host and default_port is not None:
        return text.strip("[]"), default_port
    host, separator, port = text.rpartition(":")
    if not separator or not (port.isascii() and port.isdigit()):
        raise ValueError(f"{text!r} is not HOST:PORT")
    if int(port) > HIGHEST_PORT:
        raise ValueError(f"the port of {text!r} is out of range: {HIGHEST_PORT} is the highest")
    return host.strip("[]"), int(port)


def with_ports(servers: str) -> str:
    """Brokers' addresses with commas between, each with the port it has or 9092. Raises ValueError."""
    addresses = [split_host_port(address.strip(), DEFAULT_PORT) for address in servers.split(",") if address.strip()]
    for host, port in addresses:
        if port == 0:
            raise ValueError(f"the port of {join_host_port(host, port)!r} is out of range: 1 is the lowest")
    return ",".join(join_host_port(*address) for address in addresses)


def is_address(text: str) -> bool:
    """Whether this is an IP address rather than a host name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=10_000)
def canonical_address(address: str) -> str:
    """The canonical form of an IP address; an IPv4 address mapped into IPv6 becomes the IPv4 address.

    Java writes ``0:0:0:0:0:0:0:1`` for what is ``::1`` elsewhere. Other texts stay as they are.
    """
    try:
        found = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found)
