"""A reader of key stores in Java's own format, JKS, whose keys no maintained library reads.

A file is big-endian: magic, version, the number of entries, then the entries, and a SHA-1 of password and contents. A private key
is PKCS #8, encrypted with a stream that SHA-1 makes of the password (sun.security.provider.JavaKeyStore, KeyProtector). That is
weak protection; ``keytool -importkeystore -deststoretype PKCS12`` converts it to a better format.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import struct

from .tls_der import OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, dotted, elements, only

MAGIC = b"\xfe\xed\xfe\xed"
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2
_DIGEST_SIZE = 20
_WHITENER = b"Mighty Aphrodite"
_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"


@dataclasses.dataclass(frozen=True, slots=True)
class JksEntry:
    """A private key with its certificates, or a trusted certificate."""

    alias: str
    certificates: tuple[bytes, ...]
    """In DER, the owner's first."""
    protected_key: bytes | None = dataclasses.field(default=None, repr=False)
    """None for a trusted certificate."""


def read_jks(data: bytes, password: str | None) -> list[JksEntry]:
    """The entries in their order. Without a password the checksum is not checked, as in Java.

    Raises ValueError, which says what is wrong.
    """
    if len(data) < 12 + _DIGEST_SIZE or not data.startswith(MAGIC):
        raise ValueError("not a JKS key store")
    contents, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if password is not None:
        expected = hashlib.sha1(_password_bytes(password) + _WHITENER + contents).digest()
        if not hmac.compare_digest(expected, digest):
            raise ValueError("keystore password was incorrect, or the file was changed")
    reader = _Reader(contents, len(MAGIC))
    try:
        version, count = reader.number(">I"), reader.number(">I")
        if version not in (1, 2):
            raise ValueError(f"version {version} of the format is not known")
        return [_read_entry(reader, has_types=version == 2) for _ in range(count)]
    except struct.error:
        raise ValueError("the file is cut short") from None


def _read_entry(reader: _Reader, *, has_types: bool) -> JksEntry:
    tag = reader.number(">I")
    alias = reader.take(reader.number(">H")).decode("utf-8", "replace")
    reader.number(">Q")  # when it was made
    if tag == _TRUSTED_CERTIFICATE:
        return JksEntry(alias, (_read_certificate(reader, has_types),))
    if tag != _PRIVATE_KEY:
        raise ValueError(f"an entry of type {tag} is not known")
    key = reader.take(reader.number(">I"))
    certificates = [_read_certificate(reader, has_types) for _ in range(reader.number(">I"))]
    return JksEntry(alias, tuple(certificates), key)


def _read_certificate(reader: _Reader, has_type: bool) -> bytes:
    if has_type:
        reader.take(reader.number(">H"))
    return reader.take(reader.number(">I"))


def decrypt_key(protected: bytes, password: str) -> bytes:
    """The private key of an entry, as PKCS #8 in DER. Raises ValueError, also where the password is wrong."""
    algorithm, encrypted = elements(only(protected, SEQUENCE))
    identifier = next(elements(algorithm.contents))
    if identifier.tag != OBJECT_IDENTIFIER or dotted(identifier.contents) != _KEY_PROTECTOR:
        raise ValueError("the key is encrypted in a way that is not JKS's own")
    if encrypted.tag != OCTET_STRING or len(encrypted.contents) < 2 * _DIGEST_SIZE:
        raise ValueError("the key is cut short")
    secret = _password_bytes(password)
    salt, ciphertext = encrypted.contents[:_DIGEST_SIZE], encrypted.contents[_DIGEST_SIZE:-_DIGEST_SIZE]
    block, stream = salt, bytearray()
    while len(stream) < len(ciphertext):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(ciphertext, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), encrypted.contents[-_DIGEST_SIZE:]):
        raise ValueError("the key's password is wrong")
    return key


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be")


class _Reader:
    """Takes one field after the other from the front. Raises struct.error at the end."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) < size:
            raise struct.error
        self._position += size
        return taken
