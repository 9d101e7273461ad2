"""Encryption of passwords in dynamic configs as Kafka 3.9 stores them in ZooKeeper (EncryptingPasswordEncoder, KIP-226).

The text is a list of ``name:value`` with commas between; binary values are in base 64:

======================== ==============================================================================================
``keyFactoryAlgorithm``  how the key is made of the secret: ``PBKDF2WithHmacSHA512``
``cipherAlgorithm``      ``AES/CBC/PKCS5Padding`` or ``AES/GCM/NoPadding``
``keyLength``            bits of the key
``salt``, ``iterations`` of PBKDF2
``initializationVector`` of the cipher; with GCM there is ``authenticationTagLength``, in bits, beside it
``encryptedPassword``    what the password, in UTF-8, was encrypted to
``passwordLength``       as Java counts it: halves of UTF-16
======================== ==============================================================================================

A text is decrypted with the algorithms that it names, whichever new passwords are encrypted with; so these can be changed at any
time. No error message contains any part of a password.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
from typing import Any

CBC = "AES/CBC/PKCS5Padding"
GCM = "AES/GCM/NoPadding"
CIPHERS = (CBC, GCM)
KEY_FACTORIES = {f"PBKDF2WithHmacSHA{bits}": f"sha{bits}" for bits in (512, 384, 256, 224, 1)}
"""Java's name -> that of the hash function."""
DEFAULT_KEY_FACTORY = "PBKDF2WithHmacSHA512"
AES_BITS = (128, 192, 256)
MOST_ITERATIONS = 1_000_000
"""More would block the broker for longer than half a second; Kafka's default is 4096."""

_SALT_BYTES = 256
_BLOCK_BYTES = 16
_GCM_VECTOR_BYTES = 12


class PasswordError(ValueError):
    """A password cannot be decrypted, or cannot be encrypted with these settings. ``str()`` is for the user."""


@dataclasses.dataclass(frozen=True, slots=True)
class PasswordEncoder:
    """Encrypts with these settings, and decrypts whatever was encrypted with the same secret."""

    secret: str = dataclasses.field(repr=False)
    key_factory: str = DEFAULT_KEY_FACTORY
    cipher: str = CBC
    key_bits: int = 128
    iterations: int = 4096

    def encode(self, password: str) -> str:
        """Raises PasswordError where the key does not fit the cipher."""
        salt = os.urandom(_SALT_BYTES)
        vector = os.urandom(_BLOCK_BYTES if self.cipher == CBC else _GCM_VECTOR_BYTES)
        key = _key(self.secret, self.key_factory, salt, self.iterations, self.key_bits)
        clear = password.encode()
        encrypted = _encrypt_cbc(key, vector, clear) if self.cipher == CBC else _gcm(key).encrypt(vector, clear, None)
        fields = {
            "keyFactoryAlgorithm": self.key_factory,
            "cipherAlgorithm": self.cipher,
            "keyLength": str(self.key_bits),
            "salt": _to_base64(salt),
            "iterations": str(self.iterations),
            "encryptedPassword": _to_base64(encrypted),
            "passwordLength": str(_java_length(password)),
            "initializationVector": _to_base64(vector),
        }
        if self.cipher == GCM:
            fields["authenticationTagLength"] = str(_BLOCK_BYTES * 8)
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, encoded: str) -> str:
        """Raises PasswordError, also for what was encrypted with another secret."""
        fields = dict(entry.strip().rpartition(":")[::2] for entry in encoded.split(","))
        try:
            cipher, iterations = fields["cipherAlgorithm"], int(fields["iterations"])
            if cipher not in CIPHERS or not 0 < iterations <= MOST_ITERATIONS:
                raise PasswordError(f"it is encrypted with {cipher} and {iterations} iterations")
            salt, vector, encrypted = (
                base64.b64decode(fields[name], validate=True)
                for name in ("salt", "initializationVector", "encryptedPassword")
            )
            key = _key(self.secret, fields["keyFactoryAlgorithm"], salt, iterations, int(fields["keyLength"]))
            clear = (
                _decrypt_cbc(key, vector, encrypted) if cipher == CBC else _decrypt_gcm(key, vector, encrypted, fields)
            )
            password = clear.decode()
            if _java_length(password) != int(fields["passwordLength"]):
                raise PasswordError("it has another length than it should: password.encoder.secret may be another one")
        except KeyError as error:
            raise PasswordError(f"it is not encrypted: there is no {error.args[0]}") from None
        except PasswordError:
            raise
        except ValueError:
            raise PasswordError("it cannot be decrypted: password.encoder.secret may be another one") from None
        return password


def _key(secret: str, key_factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
    hash_name = KEY_FACTORIES.get(key_factory)
    if hash_name is None or bits not in AES_BITS:
        raise PasswordError(f"{key_factory} with {bits} bits makes no key for AES")
    return hashlib.pbkdf2_hmac(hash_name, secret.encode(), salt, iterations, bits // 8)


def _cbc(key: bytes, vector: bytes) -> Any:
    # Here, because a broker without passwords needs none of it.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CBC(vector))


def _encrypt_cbc(key: bytes, vector: bytes, clear: bytes) -> bytes:
    padding = _BLOCK_BYTES - len(clear) % _BLOCK_BYTES  # PKCS #7, which Java calls PKCS5Padding
    encryptor = _cbc(key, vector).encryptor()
    encrypted: bytes = encryptor.update(clear + bytes([padding]) * padding) + encryptor.finalize()
    return encrypted


def _decrypt_cbc(key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Raises ValueError."""
    decryptor = _cbc(key, vector).decryptor()
    padded: bytes = decryptor.update(encrypted) + decryptor.finalize()
    padding = padded[-1] if padded else 0
    if not 0 < padding <= _BLOCK_BYTES or padded[-padding:] != bytes([padding]) * padding:
        raise ValueError("no padding at the end")
    return padded[:-padding]


def _gcm(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _decrypt_gcm(key: bytes, vector: bytes, encrypted: bytes, fields: dict[str, str]) -> bytes:
    """Raises ValueError."""
    from cryptography.exceptions import InvalidTag

    if int(fields["authenticationTagLength"]) != _BLOCK_BYTES * 8:
        raise ValueError("a shortened tag")
    try:
        clear: bytes = _gcm(key).decrypt(vector, encrypted, None)
    except InvalidTag:
        raise ValueError("the tag is wrong") from None
    return clear


def _java_length(password: str) -> int:
    return len(password.encode("utf-16-le")) // 2


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
