"""A broker with every listener protocol and SASL mechanism, users, and an authorizer: Ottla, or Apache Kafka.

``alice`` may do everything with what begins with ``open-``, however she gets in; so may those who do not say who they are, who
are User:ANONYMOUS. Only the super user ``admin`` has a right to anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.compat_tests.brokers import BrokerProcess, KafkaProcess, OttlaProcess
from ottla.compat_tests.clients.security import OAUTHBEARER, Security, librdkafka_properties
from ottla.compat_tests.security.tokens import AUDIENCE, TokenIssuer
from ottla.testing.certificates import Authority
from ottla.testing.held_port import HeldPort

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, OAUTHBEARER)
MUTUAL_TLS = "mutual TLS"
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret"}
OPEN = "open-"
"""What names begin with that alice and ANONYMOUS have all rights to."""
PRIVATE = "private"
"""A topic to which they have none."""
_ADMINISTERED_BY = "SASL_PLAINTEXT"
_MUTUAL = "MUTUAL"
"""The listener that requires certificates. Where they are requested only, a broker of Kafka names the authorities that it trusts,
and many clients then show no certificate of another one: so they get in, as ANONYMOUS."""
_TIMEOUT_S = 30.0
_ITERATIONS = 4096
_LOGIN = "org.apache.kafka.common.security"


class SecuredBroker:
    """``kind`` is ``ottla`` or ``kafka``; what it keeps, certificates among it, is in ``folder``."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.process: BrokerProcess = (OttlaProcess if kind == "ottla" else KafkaProcess)(folder)
        self._more_ports = {listener: HeldPort() for listener in ("PLAINTEXT", "SSL", "SASL_SSL", _MUTUAL)}
        self._ports = {each: port.number for each, port in self._more_ports.items()}
        self._ports[_ADMINISTERED_BY] = self.process.port
        self._folder = folder
        self._authority = Authority("ca")
        self._foreign_authority = Authority("another-ca")
        self._issuer = TokenIssuer(folder, "issuer")
        self._foreign_issuer = TokenIssuer(folder, "another-issuer")
        self.process.properties |= self._properties()
        if isinstance(self.process, KafkaProcess):
            self.process.properties |= _properties_of_a_kafka_controller()
            self.process.properties["listeners"] += f",CONTROLLER://127.0.0.1:{self.process.controller_port}"
            allowed = self._issuer.jwks_file.as_uri()
            self.process.system_properties = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": allowed}

    def _properties(self) -> dict[str, str]:
        listeners = ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in self._ports.items())
        return {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(_protocol_map()),
            "inter.broker.listener.name": _ADMINISTERED_BY,
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            **_login_modules("sasl_plaintext"),
            **_login_modules("sasl_ssl"),
            "sasl.oauthbearer.jwks.endpoint.url": self._issuer.jwks_file.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._certificate_file("broker", self._authority),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._write("ca.pem", self._authority.certificate_pem),
            f"listener.name.{_MUTUAL.lower()}.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
        }

    def _certificate_file(self, name: str, authority: Authority, prefix: str = "") -> str:
        return self._write(f"{prefix}{name}.pem", authority.issue(name, ["localhost", "127.0.0.1"]))

    def _write(self, name: str, content: bytes) -> str:
        file = self._folder / name
        file.touch(mode=0o600)
        file.write_bytes(content)
        return str(file)

    def address(self, protocol: str, how: str | None = None) -> str:
        """host:port of the listener of a protocol, or of the one that requires certificates."""
        return f"127.0.0.1:{self._ports[_MUTUAL if how == MUTUAL_TLS else protocol]}"

    def way_in(self, protocol: str, how: str | None = None, user: str = "alice", *, wrong: bool = False) -> Security:
        """``how`` is a mechanism or ``MUTUAL_TLS``; ``wrong`` is with a password, token or certificate that is not right."""
        certificate = token = ""
        if how == MUTUAL_TLS:
            # In a file of its own, because Spark has one producer for all that gives it the same settings.
            authority, file = (self._foreign_authority, "foreign") if wrong else (self._authority, "")
            certificate = self._certificate_file(user, authority, file)
        if how == OAUTHBEARER:
            token = str((self._foreign_issuer if wrong else self._issuer).issue(user))
        return Security(
            protocol,
            None if how == MUTUAL_TLS else how,
            username=user,
            password="not " * wrong + PASSWORDS[user],
            token_file=token,
            ca_file=str(self._folder / "ca.pem"),
            certificate_file=certificate,
        )

    def start(self) -> None:
        """Start it, and have the super user give alice passwords for SCRAM, and rights to her and ANONYMOUS."""
        self.process.start()
        login = librdkafka_properties(self.way_in(_ADMINISTERED_BY, "PLAIN", "admin"))
        admin = AdminClient({"bootstrap.servers": self.address(_ADMINISTERED_BY), **login})
        _wait(admin.create_topics([NewTopic(PRIVATE, 1, 1)]))
        for mechanism in SCRAM:  # a request has a user once
            _wait(admin.alter_user_scram_credentials([_credential(mechanism)]))
        kinds = (ResourceType.TOPIC, ResourceType.GROUP)
        _wait(admin.create_acls([_all_rights(kind, user) for kind in kinds for user in ("alice", "ANONYMOUS")]))

    def close(self) -> None:
        """End it, and let go of its ports."""
        self.process.close()
        for port in self._more_ports.values():
            port.close()


def _login_modules(listener: str) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    prefix = f"listener.name.{listener}"
    handler = f"{_LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        f"{prefix}.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required "
        f'username="admin" password="{PASSWORDS["admin"]}" {users};',
        **{f"{prefix}.{each.lower()}.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;" for each in SCRAM},
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": handler,
    }


def _protocol_map() -> list[str]:
    return [*(f"{each}:{each}" for each in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), f"{_MUTUAL}:SSL"]


def _properties_of_a_kafka_controller() -> dict[str, str]:
    """The controller has no rights as ANONYMOUS here, so it is admin, too."""
    return {
        "listener.security.protocol.map": ",".join([*_protocol_map(), "CONTROLLER:SASL_PLAINTEXT"]),
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required username="
        f'"admin" password="{PASSWORDS["admin"]}" user_admin="{PASSWORDS["admin"]}";',
    }


def _credential(mechanism: str) -> UserScramCredentialUpsertion:
    info = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], _ITERATIONS)
    return UserScramCredentialUpsertion("alice", info, PASSWORDS["alice"].encode())


def _all_rights(kind: ResourceType, user: str) -> AclBinding:
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, OPEN, ResourcePatternType.PREFIXED, f"User:{user}", "*", AclOperation.ALL, allow)


def _wait(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(timeout=_TIMEOUT_S)


@contextlib.contextmanager
def secured_broker(kind: str, folder: Path) -> Iterator[SecuredBroker]:
    """A started one, for the length of a block."""
    broker = SecuredBroker(kind, folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()
