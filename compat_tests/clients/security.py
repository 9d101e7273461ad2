"""Security settings of a client: one description, translated for Kafka's own clients, librdkafka and Python.

Files are PEM: ``ca_file`` has the certificates that a client trusts, ``certificate_file`` its own key (PKCS#8) and chain,
``token_file`` a token for OAUTHBEARER. As ``model``, this goes to drivers in other processes and imports the standard library
only.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

OAUTHBEARER = "OAUTHBEARER"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_FROM_FILE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@dataclass(frozen=True)
class Security:
    """Kafka's ``security.protocol`` and what goes with it; ``mechanism`` is None without SASL."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    token_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""

    @property
    def is_encrypted(self) -> bool:
        """Whether it is TLS."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def token(self) -> str:
        """What is in ``token_file``."""
        return Path(self.token_file).read_text().strip()


def jaas(security: Security) -> str:
    """The value of ``sasl.jaas.config``."""
    assert security.mechanism is not None
    options = f' username="{security.username}" password="{security.password}"'
    return f"{_LOGIN_MODULES[security.mechanism]} required{'' if security.mechanism == OAUTHBEARER else options};"


def client_properties(security: Security) -> dict[str, str]:
    """Kafka's client properties, for its own clients and tools, Spark, and Ottla's command line."""
    properties = {"security.protocol": security.protocol}
    if security.mechanism is not None:
        properties |= {"sasl.mechanism": security.mechanism, "sasl.jaas.config": jaas(security)}
    if security.mechanism == OAUTHBEARER:
        properties["sasl.oauthbearer.token.endpoint.url"] = Path(security.token_file).as_uri()
        properties["sasl.login.callback.handler.class"] = _TOKEN_FROM_FILE
    if security.is_encrypted and security.ca_file:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca_file}
    if security.is_encrypted and security.certificate_file:
        properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": security.certificate_file}
    return properties


def librdkafka_properties(security: Security) -> dict[str, str]:
    """librdkafka's, which have other names. A token is given to its callback and is not among them."""
    properties = {"security.protocol": security.protocol}
    if security.mechanism is not None:
        properties["sasl.mechanism"] = security.mechanism
        if security.mechanism != OAUTHBEARER:
            properties |= {"sasl.username": security.username, "sasl.password": security.password}
    if security.is_encrypted and security.ca_file:
        properties["ssl.ca.location"] = security.ca_file
    if security.is_encrypted and security.certificate_file:
        properties["ssl.certificate.location"] = security.certificate_file
        properties["ssl.key.location"] = security.certificate_file
    return properties


def ssl_context(security: Security) -> ssl.SSLContext:
    """For clients that are given a context of the ``ssl`` module."""
    context = ssl.create_default_context(cafile=security.ca_file or None)
    if security.certificate_file:
        context.load_cert_chain(security.certificate_file)
    return context
