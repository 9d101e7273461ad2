"""Translation of security settings from Kafka's client properties to those of kafka-python and librdkafka.

The values are those that Kafka accepts: stores in JKS, PKCS #12 or PEM, JAAS text for the password. A token for OAUTHBEARER is
read from a file (``sasl.oauthbearer.token.endpoint.url=file:///…``), or is an unsecured one with the claims in the JAAS text, as
with Kafka's OAuthBearerUnsecuredLoginCallbackHandler. Errors are ValueError, in one line without secrets. Files are read by
``read``, which returns the bytes or raises OSError.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..base.wording import meant
from .jaas import parse_jaas
from .tls_settings import TlsSettings

if TYPE_CHECKING:
    from .tls_material import TlsMaterial

Read = Callable[[str], bytes]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_OAUTHBEARER = MECHANISMS[-1]
_OWN_NAMES = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.client.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
    }
)
_CLAIM = "unsecuredLoginStringClaim_"
_UNSECURED_LIFE_S = 3600
"""Kafka's default, where the JAAS text has no unsecuredLoginLifetimeSeconds."""


@dataclasses.dataclass(frozen=True)
class ClientSecurity:
    """The security settings of a client."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    """None without SASL."""
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    token: Callable[[], str] | None = dataclasses.field(default=None, repr=False)
    """Returns a token that is valid now; None for other mechanisms than OAUTHBEARER."""
    tls: tuple[TlsSettings, TlsMaterial] | None = dataclasses.field(default=None, repr=False)
    """None without TLS."""


def is_about_security(name: str) -> bool:
    """Whether a client property is read here."""
    return name in security_names()


def security_names() -> frozenset[str]:
    """The client properties that are read here."""
    return _OWN_NAMES.union(*(setting.names() for setting in TlsSettings.declared.values()))


def read_client_security(properties: Mapping[str, str], read: Read) -> ClientSecurity:
    """Read Kafka's client properties; those about other things are ignored. Raises ValueError."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ValueError(
            f"security.protocol is one of {', '.join(PROTOCOLS)}, not {protocol}{meant(protocol, PROTOCOLS)}"
        )
    security = ClientSecurity(protocol)
    if protocol.endswith("SSL"):
        security = dataclasses.replace(security, tls=_read_tls(properties, read))
    if protocol.startswith("SASL"):
        security = _with_login(security, properties, read)
    return security


def _read_tls(properties: Mapping[str, str], read: Read) -> tuple[TlsSettings, TlsMaterial]:
    from .tls_material import read_material

    settings = TlsSettings.from_properties(properties)
    return settings, read_material(settings, read)


def _with_login(security: ClientSecurity, properties: Mapping[str, str], read: Read) -> ClientSecurity:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        raise ValueError(
            f"sasl.mechanism is one of {', '.join(MECHANISMS)} here, not {mechanism}{meant(mechanism, MECHANISMS)}"
        )
    if "sasl.jaas.config" not in properties:
        raise ValueError(f"{mechanism} needs sasl.jaas.config")
    options = parse_jaas(properties["sasl.jaas.config"]).options
    if mechanism == _OAUTHBEARER:
        url = properties.get("sasl.oauthbearer.token.endpoint.url")
        token = _unsecured_token(options) if url is None else _token_in_file(url, read)
        return dataclasses.replace(security, mechanism=mechanism, token=token)
    for name in ("username", "password"):
        if name not in options:
            raise ValueError(f"sasl.jaas.config: {mechanism} needs a {name}")
    return dataclasses.replace(
        security, mechanism=mechanism, username=options["username"], password=options["password"]
    )


def _token_in_file(url: str, read: Read) -> Callable[[], str]:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "file":
        raise ValueError("sasl.oauthbearer.token.endpoint.url: a token is read from a file: URL only")
    path = urllib.parse.unquote(parts.path)
    return lambda: read(path).decode().strip()


def _unsecured_token(options: Mapping[str, str]) -> Callable[[], str]:
    claims = {name.removeprefix(_CLAIM): value for name, value in options.items() if name.startswith(_CLAIM)}
    if not claims:
        raise ValueError(f"OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, or {_CLAIM}sub in sasl.jaas.config")
    life = int(options.get("unsecuredLoginLifetimeSeconds", _UNSECURED_LIFE_S))

    def token() -> str:
        now = int(time.time())
        parts = ({"alg": "none"}, {**claims, "iat": now, "exp": now + life})
        return ".".join(
            [*(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts), ""]
        )

    return token


def kafka_python_options(security: ClientSecurity) -> dict[str, Any]:
    """The arguments for kafka-python's clients. Raises ValueError."""
    options: dict[str, Any] = {"security_protocol": security.protocol}
    if security.tls is not None:
        from .tls_context import client_context

        options["ssl_context"] = client_context(*security.tls)
    if security.mechanism is not None:
        options["sasl_mechanism"] = security.mechanism
    if security.token is not None:
        options["sasl_oauth_token_provider"] = _token_provider(security.token)
    elif security.mechanism is not None:
        options |= {"sasl_plain_username": security.username, "sasl_plain_password": security.password}
    return options


def _token_provider(token: Callable[[], str]) -> object:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token()

    return TokenProvider()


def librdkafka_options(security: ClientSecurity) -> dict[str, Any]:
    """The settings for clients on librdkafka, whose names differ from Kafka's; a token comes by confluent-kafka's callback."""
    options: dict[str, Any] = {"security.protocol": security.protocol}
    if security.tls is not None:
        settings, material = security.tls
        options["ssl.endpoint.identification.algorithm"] = settings.endpoint_identification_algorithm or "none"
        if material.trusted is not None:
            options["ssl.ca.pem"] = "".join(_certificate_pem(each) for each in material.trusted)
        if material.key is not None:
            options["ssl.key.pem"] = options["ssl.certificate.pem"] = material.key.to_pem().decode()
    if security.mechanism is not None:
        options["sasl.mechanism"] = security.mechanism
    if security.token is not None:
        token = security.token
        options["oauth_cb"] = lambda _: (token(), time.time() + _UNSECURED_LIFE_S)
    elif security.mechanism is not None:
        options |= {"sasl.username": security.username, "sasl.password": security.password}
    return options


def _certificate_pem(certificate: bytes) -> str:
    import ssl

    return ssl.DER_cert_to_PEM_cert(certificate)
