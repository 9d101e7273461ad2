"""OpenSSL contexts for accepted and for outgoing connections.

- All certificates in the trust store are trusted, whether of an authority or not (as in Java); without a trust store those of
  the system are.
- Clients cannot renegotiate, and nothing is compressed.
- Protocols before TLSv1.2 are not supported; current versions of Java disable them, too.
- A private key is given to OpenSSL through a file in memory, so that it is never unencrypted on a disk.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator

from ..base.settings import SettingError
from .tls_ciphers import CipherSuites, cipher_suites
from .tls_material import TlsMaterial
from .tls_settings import TlsSettings

_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def server_context(settings: TlsSettings, material: TlsMaterial) -> ssl.SSLContext:
    """The context for accepted connections. Raises SettingError."""
    if material.key is None:
        raise SettingError("ssl.keystore.location", "null", "a listener with TLS needs a key store")
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings, material)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, material, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(settings: TlsSettings, material: TlsMaterial) -> ssl.SSLContext:
    """The context for connections to other servers, with this side's certificate if there is one. Raises SettingError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings, material)
    algorithm = settings.endpoint_identification_algorithm.lower()
    if algorithm not in ("https", ""):
        name = "ssl.endpoint.identification.algorithm"
        raise SettingError(name, settings.endpoint_identification_algorithm, "must be https or empty")
    context.check_hostname = algorithm == "https"
    context.verify_mode = ssl.CERT_REQUIRED
    if settings.protocol == "TLSv1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    _trust(context, material, ssl.Purpose.SERVER_AUTH)
    return context


def allowed_suites(settings: TlsSettings) -> CipherSuites | None:
    """The suites that a connection may use; None for any."""
    return cipher_suites(settings.cipher_suites) if settings.cipher_suites else None


def _context(kind: int, settings: TlsSettings, material: TlsMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    versions = [_VERSIONS[name] for name in settings.enabled_protocols if name in _VERSIONS]
    suites = allowed_suites(settings)
    if suites is not None:
        if not suites.of_1_3:
            versions = [version for version in versions if version is ssl.TLSVersion.TLSv1_2]
        if not suites.up_to_1_2:
            versions = [version for version in versions if version is ssl.TLSVersion.TLSv1_3]
    if not versions:
        given = ",".join(settings.enabled_protocols)
        raise SettingError("ssl.enabled.protocols", given, "no such version is available with these cipher suites")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if suites is not None and suites.up_to_1_2:
        try:
            context.set_ciphers(":".join(suites.up_to_1_2))
        except ssl.SSLError:
            given = ",".join(settings.cipher_suites)
            raise SettingError("ssl.cipher.suites", given, "OpenSSL has no such suite") from None
    if material.key is not None:
        _show(context, settings, material)
    return context


def _show(context: ssl.SSLContext, settings: TlsSettings, material: TlsMaterial) -> None:
    assert material.key is not None
    try:
        with _as_file(material.key.to_pem()) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        location = settings.keystore_location
        name = "ssl.keystore.key" if location is None else "ssl.keystore.location"
        raise SettingError(name, location or "[hidden]", f"OpenSSL does not take it: {reason(error)}") from None


def _trust(context: ssl.SSLContext, material: TlsMaterial, purpose: ssl.Purpose) -> None:
    if material.trusted is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata=b"".join(material.trusted))
    except ssl.SSLError as error:
        raise SettingError(
            "ssl.truststore.location", "[hidden]", f"OpenSSL does not take it: {reason(error)}"
        ) from None


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A path where only this process reads the bytes, for as long as the block lasts."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tls")
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:  # mode 0600
            file.write(data)
            file.flush()
            yield file.name


def reason(error: ssl.SSLError) -> str:
    """What OpenSSL says, without the place in its source."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    return error.reason.replace("_", " ").lower() if error.reason else str(error)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Try a handshake between the two, in memory and without checking the host name (SslFactory's SslEngineValidator).

    Raises ssl.SSLError where it fails.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    checks_host, client.check_hostname = client.check_hostname, False
    try:
        ends = [
            client.wrap_bio(to_client, to_server),
            server.wrap_bio(to_server, to_client, server_side=True),
        ]
    finally:
        client.check_hostname = checks_host
    while ends:
        for end in list(ends):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
                ends.remove(end)
