"""Settings for the encryption of passwords in dynamic broker configs (KIP-226)."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting

_CIPHERS = ("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding")
_KEY_FACTORIES = tuple(f"PBKDF2WithHmacSHA{bits}" for bits in (512, 384, 256, 224, 1))


class PasswordEncoderSettings(Settings):
    """How passwords of listeners that are set on a running broker are encrypted in the cluster's store."""

    secret: str | None = setting(
        "password.encoder.secret",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="What they are encrypted with; without it none can be set while the broker runs. Each broker may have its own.",
    )
    old_secret: str | None = setting(
        "password.encoder.old.secret",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="The secret before this one: passwords that are encrypted with it are encrypted again at the start.",
    )
    key_factory: str | None = setting(
        "password.encoder.keyfactory.algorithm",
        default=None,
        choices=_KEY_FACTORIES,
        doc="How a key is made of the secret, by Java's name; PBKDF2WithHmacSHA512 if it is not given.",
    )
    cipher: str = setting(
        "password.encoder.cipher.algorithm",
        default=_CIPHERS[0],
        choices=_CIPHERS,
        doc="What they are encrypted with, by Java's name.",
    )
    key_bits: int = setting(
        "password.encoder.key.length",
        default=128,
        at_least=8,
        check=lambda bits: None if bits in (128, 192, 256) else "a key of AES has 128, 192 or 256 bits",
        doc="The length of that key in bits.",
    )
    iterations: int = setting(
        "password.encoder.iterations",
        default=4096,
        at_least=1024,
        at_most=1_000_000,
        doc="How often the key's hash function is applied. What was encrypted with others before is decrypted with these.",
    )
