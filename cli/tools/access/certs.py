"""``ottla certs``: files with certificates for development, and with the settings that use them.

A key is written with mode 0600 into a folder with mode 0700, whole or not at all.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ....security.tls_certificates import Identity, issue, make_authority
from ..running import ToolError, UsageError

_HOSTS = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z0-9._@-]+")
_RESERVED = ("ca", "ca-key", "broker")
_BROKER = """\
# Of a listener with TLS; ssl.client.auth=required lets nobody in without a certificate of this authority.
ssl.keystore.type=PEM
ssl.keystore.location={directory}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/ca.pem
"""
_CLIENT = """\
# For Java's clients and ottla's own commands (--command-config).
security.protocol=SSL
ssl.keystore.type=PEM
ssl.keystore.location={directory}/{name}.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/ca.pem
"""


def make(directory: Path, *, hosts: Sequence[str], clients: Sequence[str], days: int) -> None:
    """Write what is missing, and say what. Raises ToolError, OSError."""
    for name in clients:
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise UsageError(
                f"{name!r} cannot be the name of a client: letters, figures and . _ @ - only, not ca or broker"
            )
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = directory.resolve()
    now = datetime.datetime.now(datetime.UTC)
    authority = _authority(directory, days, now)
    if hosts or not (directory / "broker.pem").exists():
        _write(directory / "broker.pem", _issued(authority, "broker", days, now, hosts or _HOSTS).key_store)
        _write(directory / "broker.properties", _BROKER.format(directory=directory))
    for name in clients:
        _write(directory / f"{name}.pem", _issued(authority, name, days, now, ()).key_store)
        _write(directory / f"{name}.properties", _CLIENT.format(directory=directory, name=name))


def _authority(directory: Path, days: int, now: datetime.datetime) -> Identity:
    certificate, key = directory / "ca.pem", directory / "ca-key.pem"
    if certificate.exists() and key.exists():
        return Identity(certificate.read_text(), key.read_text())
    if certificate.exists() or key.exists():
        raise ToolError(f"{directory} has one of ca.pem and ca-key.pem without the other")
    authority = make_authority("Ottla development CA", days, now)
    _write(key, authority.key)
    _write(certificate, authority.certificate)
    return authority


def _issued(authority: Identity, name: str, days: int, now: datetime.datetime, hosts: Sequence[str]) -> Identity:
    try:
        return issue(authority, name, days, now, hosts=hosts)
    except ValueError as error:
        raise ToolError(f"a certificate for {name} cannot be made: {error}") from None


def _write(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
    print(path)
