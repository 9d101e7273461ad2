"""``--command-config``: Kafka's client properties as the ``Security`` of a driver, with key stores converted to PEM."""

from __future__ import annotations

import ssl
from pathlib import Path

import javaproperties

from ottla.base.files import read_file
from ottla.compat_tests.clients.security import Security
from ottla.security.client_security import read_client_security


def read_security(file: Path, folder: Path) -> Security:
    """What is in stores, or is a token, is written into ``folder``, for this user only. Raises OSError, ValueError."""
    with file.open("rb") as stream:
        given = read_client_security(dict(javaproperties.load(stream)), read_file)
    ca = certificate = token = ""
    if given.tls is not None:
        _, material = given.tls
        if material.trusted is not None:
            ca = _write(folder / "ca.pem", "".join(map(ssl.DER_cert_to_PEM_cert, material.trusted)))
        if material.key is not None:
            certificate = _write(folder / "client.pem", material.key.to_pem().decode())
    if given.token is not None:
        token = _write(folder / "token", given.token())
    return Security(given.protocol, given.mechanism, given.username, given.password, token, ca, certificate)


def _write(file: Path, text: str) -> str:
    file.touch(mode=0o600)
    file.write_text(text)
    return str(file)
