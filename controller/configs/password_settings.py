"""Settings for the encryption of passwords in dynamic broker configs (KIP-226)."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting

_CIPHERS = ("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding")
_KEY_FACTORIES = tuple(f"PBKDF2WithHmacSHA{bits}" for bits in (512, 384, 256, 224, 1))


class PasswordEncoderSettings(Settings):
    """Encryption of listeners' passwords that are set on a running broker."""

    secret: str | None = setting(
        "password.encoder.secret",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="The secret that encrypts them; without it no password can be set while the broker runs. Each broker "
        "may have a different one.",
    )
    old_secret: str | None = setting(
        "password.encoder.old.secret",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="The previous secret. Its passwords are encrypted again when the broker starts.",
    )
    key_factory: str | None = setting(
        "password.encoder.keyfactory.algorithm",
        default=None,
        choices=_KEY_FACTORIES,
        doc="The function that derives the key from the secret, by Java's name; by default PBKDF2WithHmacSHA512.",
    )
    cipher: str = setting(
        "password.encoder.cipher.algorithm",
        default=_CIPHERS[0],
        choices=_CIPHERS,
        doc="The cipher, by Java's name.",
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
        doc="Iterations of the key's hash function. Passwords keep the number with which they were encrypted.",
    )
