"""A cluster of three Ottla brokers whose only listener is SASL_SSL, for clients and for each other.

Each broker has a certificate, and authenticates to the others as the user ``broker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.clients.security import Security, jaas
from ottla.compat_tests.clusters import OttlaCluster
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.testing.certificates import Authority

USERS = {"admin": "admin-secret", "broker": "broker-secret", "alice": "alice-secret"}
MECHANISM = "PLAIN"
_LISTENER = "listener.name.sasl_ssl"


class SecuredCluster(OttlaCluster):
    """Brokers know each other by the user ``broker``, with a certificate each. ``admin`` may do everything."""

    def __init__(self, folder: Path, zookeeper: ZooKeeperProcess, root: str, properties: Mapping[str, str]) -> None:
        self._authority = Authority("cluster")
        self._ca_file = folder / "ca.pem"
        self._ca_file.write_bytes(self._authority.certificate_pem)
        super().__init__(folder, zookeeper=zookeeper, root=root, properties=properties)
        self.security = self.way_in("admin")

    def way_in(self, user: str, password: str | None = None) -> Security:
        """How a user gets in."""
        return Security("SASL_SSL", MECHANISM, user, password or USERS[user], ca_file=str(self._ca_file))

    def make_broker(self, folder: Path, properties: Mapping[str, str]) -> BrokerProcess:
        broker = super().make_broker(folder, properties)
        key_store = folder / "broker.pem"
        key_store.touch(mode=0o600)
        key_store.write_bytes(self._authority.issue(folder.name, ["127.0.0.1"]))
        login = jaas(Security(mechanism=MECHANISM, username="broker", password=USERS["broker"]))
        accepted = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        broker.properties |= {
            "listeners": f"SASL_SSL://{broker.address}",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"{_LISTENER}.plain.sasl.jaas.config": f"{login.removesuffix(';')} {accepted};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca_file),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin;User:broker",
        }
        return broker
