"""Certificates of TLS listeners, and of key stores on the disk, that end soon.

A listener is connected to without a look at who signed it: only the dates are of interest. One that wants a certificate of its
client shows its own before that, with TLS 1.3.
"""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import trio

from ....base.addresses import join_host_port
from ....base.settings import SettingError
from ....broker.listeners.addresses import parse_endpoints, parse_protocol_map
from ....broker.settings import BrokerSettings
from ....security.tls_context import reason
from .broker_checks import DescribedBroker
from .diagnosis import Area, Diagnosis, note, ok, problem, unknown, warning
from .examined import ExaminedCluster

_WARNING_DAYS, _PROBLEM_DAYS = 30, 3
"""A month is time for an authority to sign; in three days there may be a weekend."""
_CONNECT_S = 5.0
_MEND = "docs/security.md: renew it, and set ssl.keystore.location again with 'ottla configs set --broker ID'"
_MAP = str(BrokerSettings.declared["listener_security_protocol_map"].default)


class TlsAddress(NamedTuple):
    """A listener with TLS."""

    broker_id: int
    host: str
    port: int


def tls_addresses(
    nodes: Mapping[int, tuple[str, int]], told: Mapping[int, DescribedBroker], *, uses_tls: bool
) -> list[TlsAddress]:
    """The listeners with TLS that settings name; and those that this client itself is told of, if it ``uses_tls``."""
    found = {TlsAddress(broker, *address) for broker, address in nodes.items() if uses_tls}
    for broker, each in told.items():
        text = each.value("advertised.listeners") or each.value("listeners") or ""
        try:
            protocols = parse_protocol_map(each.value("listener.security.protocol.map") or _MAP)
            endpoints = parse_endpoints("advertised.listeners", text, protocols)
        except SettingError:
            continue
        for endpoint in endpoints:
            if endpoint.security_protocol.endswith("SSL") and endpoint.port:
                found.add(TlsAddress(broker, endpoint.host or nodes[broker][0], endpoint.port))
    return sorted(found)


async def of_listeners(cluster: ExaminedCluster, addresses: Iterable[TlsAddress]) -> list[Diagnosis]:
    """A line for each certificate that ends soon, or cannot be seen."""
    found: list[Diagnosis] = []

    async def look(address: TlsAddress) -> None:
        place = f"{join_host_port(address.host, address.port)} (broker {address.broker_id})"
        try:
            certificate = await cluster.workers.run(_certificate, address.host, address.port)
        except ssl.SSLError as error:
            found.append(unknown(Area.CERTIFICATES, f"The certificate of {place}: {reason(error)}"))
        except OSError as error:
            found.append(unknown(Area.CERTIFICATES, f"The certificate of {place}: {error.strerror or error}"))
        else:
            found.append(line(place, certificate))

    async with trio.open_nursery() as nursery:
        for address in addresses:
            nursery.start_soon(look, address)
    found.sort(key=lambda each: each.what)
    return found or [note(Area.CERTIFICATES, "No listener with TLS is known")]


def _certificate(host: str, port: int) -> bytes:
    """The certificate in DER. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent: only its dates are read
    with (
        socket.create_connection((host, port), timeout=_CONNECT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""


def line(whose: str, certificate: bytes) -> Diagnosis:
    """How long a certificate in DER is valid from now on."""
    from cryptography import x509

    try:
        end = x509.load_der_x509_certificate(certificate).not_valid_after_utc
    except ValueError as error:
        return unknown(Area.CERTIFICATES, f"The certificate of {whose}: {error}")
    left = end - datetime.datetime.now(datetime.UTC)
    until = f"{end:%Y-%m-%d %H:%M} UTC"
    if left <= datetime.timedelta():
        return problem(Area.CERTIFICATES, f"The certificate of {whose} ended on {until}: clients refuse it", _MEND)
    what = f"The certificate of {whose} ends on {until}, in {left.days} days"
    if left < datetime.timedelta(_PROBLEM_DAYS):
        return problem(Area.CERTIFICATES, what, _MEND)
    return (
        warning(Area.CERTIFICATES, what, _MEND)
        if left < datetime.timedelta(_WARNING_DAYS)
        else ok(Area.CERTIFICATES, what)
    )
