"""Readers of keys and certificates in key stores and trust stores: PKCS #12, JKS and PEM.

As in Java the beginning of a file tells its format: PKCS #12 may be called JKS and the reverse (current versions of keytool write
PKCS #12 by default). PEM is the exception, because other settings go with it (KIP-651).

Errors are ValueError, in one line without secrets. No ``repr`` shows a key.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .tls_jks import MAGIC as _JKS
from .tls_jks import decrypt_key, read_jks

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

_JCEKS = b"\xce\xce\xce\xce"
_DER_SEQUENCE = 0x30
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s+([A-Za-z0-9+/=\s]*?)-----END \1-----")


@dataclasses.dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key, as PKCS #8 in DER without encryption, and its certificate chain in DER, the owner's certificate first."""

    key: bytes = dataclasses.field(repr=False)
    chain: tuple[bytes, ...]

    def to_pem(self) -> bytes:
        """The key and then the chain, as OpenSSL reads them."""
        return b"".join([_to_pem("PRIVATE KEY", self.key), *(_to_pem("CERTIFICATE", each) for each in self.chain)])


def read_key_store(data: bytes, password: str, key_password: str | None) -> KeyEntry:
    """The first private key of a PKCS #12 or JKS file. ``key_password`` is for JKS, whose keys may have one of their own."""
    if _is_pkcs12(data):
        store = _load_pkcs12(data, password)
        if store.key is None or store.cert is None:
            raise ValueError("there is no private key in it")
        return KeyEntry(_pkcs8(store.key), _ordered(store))
    for entry in read_jks(data, password):
        if entry.protected_key is not None:
            key = decrypt_key(entry.protected_key, password if key_password is None else key_password)
            return KeyEntry(key, entry.certificates)
    raise ValueError("there is no private key in it")


def read_trust_store(data: bytes, password: str | None) -> tuple[bytes, ...]:
    """The trusted certificates of a PKCS #12 or JKS file, in DER; of an entry with a private key its owner's, as in Java."""
    if _is_pkcs12(data):
        store = _load_pkcs12(data, password)
        entries = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
        trusted = tuple(_der(entry.certificate) for entry in entries)
    else:
        trusted = tuple(entry.certificates[0] for entry in read_jks(data, password) if entry.certificates)
    if not trusted:
        raise ValueError("there is no certificate in it")
    return trusted


def read_pem_key(key: str, chain: str, key_password: str | None) -> KeyEntry:
    """A private key and its certificates, which may be in the same text."""
    keys = [(name, data) for name, data in _blocks(key) if name.endswith("PRIVATE KEY")]
    if not keys:
        raise ValueError("no private key in PEM")
    if len(keys) > 1:
        raise ValueError(f"one private key was expected, and there are {len(keys)}")
    name, data = keys[0]
    if name not in ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):
        raise ValueError(f"the key is a {name}, and only PKCS #8 is read: openssl pkcs8 -topk8 converts it")
    return KeyEntry(
        _decrypted(data, key_password, is_encrypted=name.startswith("ENCRYPTED")), read_pem_certificates(chain)
    )


def read_pem_certificates(text: str) -> tuple[bytes, ...]:
    """The certificates in a text, in DER."""
    certificates = tuple(data for name, data in _blocks(text) if name in ("CERTIFICATE", "X509 CERTIFICATE"))
    if not certificates:
        raise ValueError("no certificate in PEM")
    return certificates


def is_pem(data: bytes) -> bool:
    """Whether a file is text with a key or certificates in it."""
    return not data.startswith((_JKS, _JCEKS)) and b"-----BEGIN " in data


def _is_pkcs12(data: bytes) -> bool:
    if data.startswith(_JCEKS):
        raise ValueError(
            "it is a JCEKS file: keytool -importkeystore -deststoretype PKCS12 converts it to a format that is read"
        )
    return data[:1] == bytes([_DER_SEQUENCE])


def _load_pkcs12(data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise ValueError(f"the password was incorrect, or it is not a PKCS #12 file: {error}") from None


def _pkcs8(key: object) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    data: bytes = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())  # type: ignore[attr-defined]
    return data


def _decrypted(key: bytes, password: str | None, *, is_encrypted: bool) -> bytes:
    if is_encrypted == (password is None):
        raise ValueError(
            "the key is encrypted, and there is no password for it" if is_encrypted else "the key has no password"
        )
    if password is None:
        return key
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        return _pkcs8(load_der_private_key(key, password.encode()))
    except (ValueError, TypeError) as error:
        raise ValueError(f"the key cannot be decrypted: {error}") from None


def _ordered(store: PKCS12KeyAndCertificates) -> tuple[bytes, ...]:
    """The owner's certificate, that of its issuer, and so on: a file has them in any order."""
    assert store.cert is not None
    chain: list[Certificate] = [store.cert.certificate]
    others = [entry.certificate for entry in store.additional_certs]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return tuple(_der(each) for each in chain)


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _blocks(text: str) -> Sequence[tuple[str, bytes]]:
    """(type, DER) of each block in PEM, whose lines may have been joined, as in a properties file."""
    try:
        return [
            (found[1], base64.b64decode("".join(found[2].split()), validate=True)) for found in _BLOCK.finditer(text)
        ]
    except binascii.Error as error:
        raise ValueError(f"malformed PEM: {error}") from None


def _to_pem(name: str, data: bytes) -> bytes:
    lines = base64.encodebytes(data).replace(b"\n", b"")
    body = b"\n".join(lines[at : at + 64] for at in range(0, len(lines), 64))
    return b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (name.encode(), body, name.encode())
