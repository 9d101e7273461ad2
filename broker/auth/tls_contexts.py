"""The TLS contexts of a listener, built from its settings and rebuilt when they change at run time (KIP-226).

When a listener's key store or trust store is changed at run time (or set again to the same file, whose content has changed), new
connections use it, and open ones go on as they are. As in Kafka's SslFactory some changes are refused: another distinguished
name or fewer alternative names, a key store or trust store where there was none, no key store where there was one, and, on
the listener that brokers use, a store with which old and new could not connect to each other.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import ssl
from pathlib import Path

from ...base.config import Config
from ...base.settings import SettingError
from ...controller.configs.password_settings import PasswordEncoderSettings
from ...controller.quorum.settings import QuorumSettings
from ...security.tls_ciphers import CipherSuites
from ...security.tls_context import allowed_suites, client_context, reason, server_context, shake_hands
from ...security.tls_material import TlsMaterial, check_compatible, read_material
from ...security.tls_settings import TlsSettings
from ..listener_config import ListenerConfig

logger = logging.getLogger(__name__)

_NOT_VERIFIED = (
    "A client SSLEngine created with the provided settings can't connect to a server SSLEngine "
    "created with those settings."
)


@dataclasses.dataclass(frozen=True, slots=True)
class TlsContexts:
    """The contexts made from one state of settings and files."""

    settings: TlsSettings
    material: TlsMaterial
    stamps: tuple[int | None, ...]
    """The files' times of change when they were read, in nanoseconds; None for a file that is not set or not there."""
    server: ssl.SSLContext | None
    """None where the contexts are for connecting only."""
    client: ssl.SSLContext
    suites: CipherSuites | None

    def is_of(self, settings: TlsSettings) -> bool:
        """Whether these settings, with the files as they are now, would give the same contexts."""
        return vars(settings) == vars(self.settings) and _stamps(settings) == self.stamps


class ListenerTls:
    """The contexts of a listener: ``current``."""

    def __init__(self, config: ListenerConfig, *, is_server: bool, is_inter_broker: bool) -> None:
        """``is_server``: for accepting connections, which needs a key store; otherwise for connecting to other brokers' listener
        of that name. Raises SettingError.
        """
        config.config.settings(TlsSettings)  # parsed once without prefix, so that a running broker can change them
        self._config = config
        self._is_server = is_server
        self._is_verified = is_server and is_inter_broker
        self._seen = config.config.dynamic_broker
        self._current: TlsContexts | None = None
        try:
            self._current = self._made()
        except SettingError:
            if not self._may_come_later():
                raise

    def current(self) -> TlsContexts:
        """The contexts for the settings as they are now; the last ones, with a log line, where the settings are unusable.

        Raises SettingError where no settings were usable yet.
        """
        if self._current is None:
            self._seen = self._config.config.dynamic_broker
            self._current = self._made()
        if self._seen is not self._config.config.dynamic_broker:  # each change rebuilds it
            self._seen = self._config.config.dynamic_broker
            try:
                changed = self._changed(self._config)
            except SettingError as error:
                logger.error("listener %s keeps its present stores: %s", self._config.listener, error)
            except Exception:  # whatever OpenSSL or cryptography raises for a bad file must not end the broker
                logger.exception("listener %s keeps its present stores", self._config.listener)
            else:
                if changed is not self._current:
                    logger.info("listener %s has read its key store and trust store again", self._config.listener)
                self._current = changed
        return self._current

    def _may_come_later(self) -> bool:
        """Whether the cluster may have stores and passwords set at run time, which a start learns after the listeners are bound.

        A quorum's metadata log can always have some, the nodes of a ZooKeeper only where passwords can be encrypted.
        """
        config = self._config.config
        is_of_quorum = bool(config.settings(QuorumSettings).process_roles)
        can_be_stored = is_of_quorum or config.settings(PasswordEncoderSettings).secret is not None
        return can_be_stored and not config.dynamic_broker

    def _made(self) -> TlsContexts:
        """The first contexts. Raises SettingError."""
        made = self._make(self._config)
        if self._is_verified:
            self._verify(made, made)
        return made

    def check(self, changed: Config) -> None:
        """Check that a changed configuration can be used. Raises SettingError."""
        self._changed(ListenerConfig(changed, self._config.listener, self._config.security_protocol))

    def _make(self, config: ListenerConfig) -> TlsContexts:
        settings = config.settings(TlsSettings)
        stamps = _stamps(settings)
        try:
            material = read_material(settings, lambda path: Path(path).read_bytes())
            return TlsContexts(
                settings,
                material,
                stamps,
                server_context(settings, material) if self._is_server else None,
                client_context(settings, material),
                allowed_suites(settings),
            )
        except SettingError as error:
            if config.prefixed(error.name) is not None:
                raise SettingError(config.prefix + error.name, error.value, error.why) from None
            raise

    def _changed(self, config: ListenerConfig) -> TlsContexts:
        """The contexts for a configuration; the current ones where it changes nothing. Raises SettingError."""
        settings, before = config.settings(TlsSettings), self._current
        if before is None:
            return self._make(config)
        if before.is_of(settings):
            return before
        changed = self._make(config)
        try:
            _check_change(before, changed)
        except ValueError as error:
            location = settings.keystore_location or "[hidden]"
            raise SettingError(f"{config.prefix}ssl.keystore.location", location, str(error)) from None
        if self._is_verified:
            # Both ways: while the brokers take over a store one by one, some have the old one and some the new one.
            self._verify(before, changed)
            self._verify(changed, before)
        return changed

    def _verify(self, one: TlsContexts, other: TlsContexts) -> None:
        """Try a handshake between the two, because brokers will connect to each other with them. Raises SettingError."""
        assert one.server is not None
        try:
            shake_hands(one.server, other.client)
        except ssl.SSLError as error:
            location = other.settings.keystore_location or "[hidden]"
            why = f"{_NOT_VERIFIED} ({reason(error)})"
            raise SettingError(f"{self._config.prefix}ssl.keystore.location", location, why) from None


def _check_change(before: TlsContexts, changed: TlsContexts) -> None:
    """Raises ValueError, in Kafka's words (SslFactory createNewSslEngineFactory)."""
    old, new = before.material, changed.material
    if old.key is None and new.key is not None:
        raise ValueError("Cannot add SSL keystore to an existing listener for which no keystore was configured.")
    if old.key is not None:
        if new.key is None:
            raise ValueError(
                "Cannot remove the SSL keystore from an existing listener for which a keystore was configured."
            )
        check_compatible(new.key, old.key, changed.settings)
    if old.trusted is None and new.trusted is not None:
        raise ValueError("Cannot add SSL truststore to an existing listener for which no truststore was configured.")


def _stamps(settings: TlsSettings) -> tuple[int | None, ...]:
    return tuple(
        None if path is None else _modified(path) for path in (settings.keystore_location, settings.truststore_location)
    )


def _modified(path: str) -> int | None:
    """When the file was changed, in nanoseconds; None where there is no file, for which reading it raises an error."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
