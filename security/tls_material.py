"""Loading and checking of the key store and the trust store that the TLS settings name.

Which settings exclude each other is as in Kafka's DefaultSslEngineFactory, with its messages. The caller reads files: ``read``
returns the bytes of a file, or raises OSError.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from ..base.settings import SettingError
from .tls_names import subject_name
from .tls_settings import PEM, TlsSettings
from .tls_stores import (
    KeyEntry,
    is_pem,
    read_key_store,
    read_pem_certificates,
    read_pem_key,
    read_trust_store,
)

T = TypeVar("T")
Read = Callable[[str], bytes]
_HIDDEN = "[hidden]"


@dataclasses.dataclass(frozen=True, slots=True)
class TlsMaterial:
    """The contents of the key store and the trust store."""

    key: KeyEntry | None
    """None without a key store."""
    trusted: tuple[bytes, ...] | None
    """Certificates in DER; None without a trust store."""


def read_material(settings: TlsSettings, read: Read) -> TlsMaterial:
    """Raises SettingError."""
    return TlsMaterial(_read_key(settings, read), _read_trusted(settings, read))


def _read_key(settings: TlsSettings, read: Read) -> KeyEntry | None:
    path, password = settings.keystore_location, settings.keystore_password
    key, chain, is_pem_type = settings.keystore_key, settings.keystore_certificate_chain, settings.keystore_type == PEM
    if key is not None:
        name = "ssl.keystore.key"
        if not is_pem_type:
            why = f"SSL private key can be specified only for PEM, but key store type is {settings.keystore_type}."
        elif chain is None:
            why = "SSL private key is specified, but certificate chain is not specified."
        elif path is not None:
            why = "Both SSL key store location and separate private key are specified."
        elif password is not None:
            why = "SSL key store password cannot be specified with PEM format, only key password may be specified."
        else:
            return _parsed(name, _HIDDEN, lambda: read_pem_key(key, chain, settings.key_password))
        raise SettingError(name, _HIDDEN, why)
    if chain is not None:
        why = "SSL certificate chain is specified, but private key is not specified"
        raise SettingError("ssl.keystore.certificate.chain", _HIDDEN, why)
    if path is None:
        if password is not None and not is_pem_type:
            why = "SSL key store is not specified, but key store password is specified."
            raise SettingError("ssl.keystore.password", _HIDDEN, why)
        return None
    name = "ssl.keystore.location"
    if is_pem_type:
        if password is not None:
            why = "SSL key store password cannot be specified with PEM format, only key password may be specified"
            raise SettingError("ssl.keystore.password", _HIDDEN, why)
        text = _text(name, path, read)
        return _parsed(name, path, lambda: read_pem_key(text, text, settings.key_password))
    if password is None:
        why = "SSL key store is specified, but key store password is not specified."
        raise SettingError(name, path, why)
    data = _binary(name, path, read)
    return _parsed(name, path, lambda: read_key_store(data, password, settings.key_password))


def _read_trusted(settings: TlsSettings, read: Read) -> tuple[bytes, ...] | None:
    path, password = settings.truststore_location, settings.truststore_password
    certificates, is_pem_type = settings.truststore_certificates, settings.truststore_type == PEM
    if certificates is not None:
        name = "ssl.truststore.certificates"
        if not is_pem_type:
            why = f"SSL trust store certs can be specified only for PEM, but trust store type is {settings.truststore_type}."
        elif path is not None:
            why = "Both SSL trust store location and separate trust certificates are specified."
        elif password is not None:
            why = "SSL trust store password cannot be specified for PEM format."
        else:
            return _parsed(name, _HIDDEN, lambda: read_pem_certificates(certificates))
        raise SettingError(name, _HIDDEN, why)
    if path is None:
        if password is not None and not is_pem_type:
            why = "SSL trust store is not specified, but trust store password is specified."
            raise SettingError("ssl.truststore.password", _HIDDEN, why)
        return None
    name = "ssl.truststore.location"
    if is_pem_type:
        if password is not None:
            why = "SSL trust store password cannot be specified for PEM format."
            raise SettingError("ssl.truststore.password", _HIDDEN, why)
        text = _text(name, path, read)
        return _parsed(name, path, lambda: read_pem_certificates(text))
    data = _binary(name, path, read)
    return _parsed(name, path, lambda: read_trust_store(data, password))


def _parsed(name: str, value: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except ValueError as error:
        raise SettingError(name, value, str(error)) from None


def _text(name: str, path: str, read: Read) -> str:
    data = _bytes(name, path, read)
    if not is_pem(data):
        raise SettingError(name, path, "the file is not PEM")
    return data.decode("utf-8", "replace")


def _binary(name: str, path: str, read: Read) -> bytes:
    data = _bytes(name, path, read)
    if is_pem(data):
        raise SettingError(name, path, f"the file is PEM: set {name.replace('location', 'type')}=PEM")
    return data


def _bytes(name: str, path: str, read: Read) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise SettingError(name, path, f"the file cannot be read: {error.strerror or error}") from None


def check_compatible(new: KeyEntry, old: KeyEntry, settings: TlsSettings) -> None:
    """Check that a key store may replace another one at run time (SslFactory's CertificateEntries). Raises ValueError."""
    if not settings.allow_dn_changes:
        names = subject_name(old.chain[0]), subject_name(new.chain[0])
        if names[0].casefold() != names[1].casefold():
            raise ValueError(f"Keystore DistinguishedName does not match: existing={names[0]}, new={names[1]}")
    if not settings.allow_san_changes:
        existing, given = alternative_names(old.chain[0]), alternative_names(new.chain[0])
        if not existing <= given:
            lost = ", ".join(sorted(existing - given))
            raise ValueError(f"Keystore SubjectAltNames do not match: the new certificate lacks {lost}")


def alternative_names(certificate: bytes) -> frozenset[str]:
    """The subject's alternative names in a certificate in DER: ``DNS:name``, ``IP:address`` and so on."""
    from cryptography import x509

    try:
        extension = x509.load_der_x509_certificate(certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return frozenset()
    prefixes: dict[type, str] = {
        x509.DNSName: "DNS",
        x509.IPAddress: "IP",
        x509.UniformResourceIdentifier: "URI",
        x509.RFC822Name: "email",
    }
    return frozenset(f"{prefixes.get(type(name), type(name).__name__)}:{name.value}" for name in extension.value)
