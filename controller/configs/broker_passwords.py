"""Passwords in dynamic broker configs: clear text in the configuration, encrypted in ZooKeeper.

They are those of listeners' key stores and login modules (DynamicBrokerConfig ``DynamicPasswordConfigs``). A broker encrypts
and decrypts its own, with ``password.encoder.secret``; no other program uses them. One that it cannot decrypt it ignores, with
an error in the log, and drops at the next change of its settings, as Kafka's broker does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from ...base.config import Config
from ...base.errors import ErrorCode, KafkaError
from .password_settings import PasswordEncoderSettings

logger = logging.getLogger(__name__)

_PASSWORDS = (
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "sasl.jaas.config",
)


def is_password(name: str) -> bool:
    """Whether the value is encrypted in the store; with a listener's prefix as without."""
    return name.endswith(_PASSWORDS)


class StoredPasswords(Protocol):
    """How passwords are kept where dynamic configs are stored."""

    def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        """What is stored with its passwords in the clear, without those that cannot be decrypted."""
        ...

    def changed(
        self, stored: Mapping[str, str], change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> dict[str, str]:
        """What is to be stored after ``change``, which is given the passwords in the clear. Raises what it raises."""
        ...


class ClearPasswords:
    """As a KRaft quorum keeps them: the metadata log has them in the clear."""

    def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        return dict(stored)

    def changed(
        self, stored: Mapping[str, str], change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> dict[str, str]:
        return dict(change(stored))


class BrokerPasswords:
    """Encrypts and decrypts by the settings of one broker."""

    def __init__(self, config: Config) -> None:
        self._settings = config.settings(PasswordEncoderSettings)

    def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        """What is stored with its passwords in the clear, without those that cannot be decrypted."""
        clear = {}
        for name, value in stored.items():
            if not is_password(name):
                clear[name] = value
            elif (password := self._decode(name, value, self._settings.secret)) is not None:
                clear[name] = password
        return clear

    def changed(
        self, stored: Mapping[str, str], change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> dict[str, str]:
        """What is to be stored after ``change``, which is given the passwords in the clear. Raises what it raises, and
        KafkaError INVALID_CONFIG for a new password where there is no secret.

        A password that stays is not encrypted again, so that its stored form stays the same.
        """
        known = self.decoded(stored)
        return {
            name: stored[name] if known.get(name) == value else self._encode(name, value)
            for name, value in change(known).items()
        }

    def with_new_secret(self, stored: Mapping[str, str]) -> dict[str, str]:
        """What is stored with the passwords that the old secret decrypts encrypted with the new one. Raises KafkaError."""
        old = self._settings.old_secret
        if old is None:
            return dict(stored)
        return {
            name: value
            if not is_password(name) or (password := self._decode(name, value, old, is_told=False)) is None
            else self._encode(name, password)
            for name, value in stored.items()
        }

    def _encode(self, name: str, value: str) -> str:
        if not is_password(name):
            return value
        from ...security.password_encoder import DEFAULT_KEY_FACTORY, PasswordEncoder  # few brokers need it

        settings = self._settings
        if settings.secret is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "Password encoder secret not configured")
        key_factory = settings.key_factory or DEFAULT_KEY_FACTORY
        encoder = PasswordEncoder(settings.secret, key_factory, settings.cipher, settings.key_bits, settings.iterations)
        return encoder.encode(value)

    def _decode(self, name: str, value: str, secret: str | None, *, is_told: bool = True) -> str | None:
        from ...security.password_encoder import PasswordEncoder, PasswordError

        try:
            if secret is None:
                raise PasswordError("there is no password.encoder.secret")
            return PasswordEncoder(secret).decode(value)
        except PasswordError as error:
            if is_told:
                logger.error("%s is stored as a dynamic config, and ignored: %s", name, error)
            return None
