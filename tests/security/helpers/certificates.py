"""Certificates for the tests: a certificate authority that everything trusts, made once."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from pathlib import Path

from ottla.security.tls_certificates import Identity, issue, make_authority
from ottla.security.tls_material import read_material
from ottla.security.tls_settings import TlsSettings

HOSTS = ("test", "localhost", "127.0.0.1")


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@functools.cache
def authority(name: str = "CA") -> Identity:
    return make_authority(name, 30, now())


@functools.cache
def broker(name: str = "broker", hosts: tuple[str, ...] = HOSTS) -> Identity:
    return issue(authority(), name, 30, now(), hosts=hosts)


@functools.cache
def client(name: str = "alice", unit: str | None = None) -> Identity:
    return issue(authority(), name, 30, now(), unit=unit)


def settings_of(identity: Identity | None, trusted: Identity | None = None, **more: str) -> dict[str, str]:
    """Properties with a certificate of its own and a trusted authority; ``more`` has _ for the dots."""
    trusted = trusted or authority()
    properties = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted.certificate}
    if identity is not None:
        properties |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": identity.key,
            "ssl.keystore.certificate.chain": identity.certificate,
        }
    return properties | {name.replace("_", "."): value for name, value in more.items()}


def parsed(properties: Mapping[str, str]):  # type: ignore[no-untyped-def]
    """(settings, material) of such properties."""
    settings = TlsSettings.from_properties(properties)
    return settings, read_material(settings, lambda path: Path(path).read_bytes())
