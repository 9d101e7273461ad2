"""TLS on a listener's connections, and on those to other brokers: handshake, cipher suite, and the client's principal."""

from __future__ import annotations

import ssl

from ...base.config import Config
from ...base.network import Connection
from ...base.seams import Workers
from ...base.settings import SettingError
from ...base.tls import TlsConnection
from ...handlers.connection_context import ConnectionContext
from ...security.principal import USER, Principal
from ...security.tls_ciphers import CipherSuites
from ...security.tls_context import reason
from ...security.tls_names import subject_name
from ...security.tls_principal_rules import NoMatchingRuleError, PrincipalRules
from ...security.tls_settings import TlsSettings
from ..listener_config import ListenerConfig
from .tls_contexts import ListenerTls
from .tls_handshakes import Handshakes

# OpenSSL's reasons where the first bytes are not TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNEXPECTED_MESSAGE", "BAD_RECORD_TYPE")


class TlsListener:
    """The ``Transport`` of a listener: ``accept``."""

    def __init__(self, config: ListenerConfig, workers: Workers, *, is_inter_broker: bool) -> None:
        """Raises SettingError."""
        self._listener = config.listener
        self._protocol = config.security_protocol
        self._workers = workers
        self._tls = ListenerTls(config, is_server=True, is_inter_broker=is_inter_broker)
        self._handshakes = Handshakes()
        self._rules = PrincipalRules(config.settings(TlsSettings).principal_mapping_rules)

    async def accept(self, connection: Connection, context: ConnectionContext) -> Connection:
        """Make the handshake, and set the client's principal from its certificate. Raises OSError."""
        contexts = self._tls.current()
        assert contexts.server is not None
        tls = TlsConnection(connection, contexts.server, self._workers)
        try:
            await self._handshakes.run(tls.handshake)
        except ssl.SSLError as error:
            raise OSError(self._in_words(error)) from None
        _check_suite(tls, contexts.suites)
        certificate = tls.peer_certificate
        if certificate is not None and self._protocol == "SSL":
            context.principal = Principal(USER, self._name(certificate))
        return tls

    def check(self, changed: Config) -> None:
        """Check that the listener could use another configuration. Raises SettingError."""
        self._tls.check(changed)

    def follow(self) -> None:
        """Use the configuration, and the stores' files, as they are now."""
        self._tls.current()

    def _name(self, certificate: bytes) -> str:
        try:
            return self._rules.name(subject_name(certificate))
        except (NoMatchingRuleError, ValueError) as error:
            raise OSError(str(error)) from None

    def _in_words(self, error: ssl.SSLError) -> str:
        if error.reason in _NOT_TLS:
            return (
                f"this does not look like TLS: the listener {self._listener} is {self._protocol}; "
                f"set security.protocol={self._protocol} in the client"
            )
        return f"SSL handshake failed: {reason(error)}"


class TlsPeers:
    """The ``Secure`` of connections to other brokers' listener of that name: ``secure``."""

    def __init__(self, config: ListenerConfig, workers: Workers) -> None:
        """Raises SettingError."""
        self._workers = workers
        self._tls = ListenerTls(config, is_server=False, is_inter_broker=True)

    async def secure(self, connection: Connection, host: str) -> Connection:
        """Make the handshake with the broker at ``host``, which its certificate has to name. Raises OSError."""
        try:
            contexts = self._tls.current()
        except SettingError as error:
            raise OSError(str(error)) from None
        tls = TlsConnection(connection, contexts.client, self._workers, server_name=host)
        try:
            await tls.handshake()
        except ssl.SSLError as error:
            raise OSError(f"SSL handshake failed: {reason(error)}") from None
        _check_suite(tls, contexts.suites)
        return tls


def _check_suite(tls: TlsConnection, suites: CipherSuites | None) -> None:
    if suites is not None and not suites.is_allowed(tls.cipher):
        raise OSError(f"the peer has chosen {tls.cipher}, which ssl.cipher.suites does not name")
