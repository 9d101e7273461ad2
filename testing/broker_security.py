"""Authentication and TLS for a broker of a test: users with passwords, a certificate, and the properties that clients need.

The certificate is signed by an authority that is made for this broker only; it names ``localhost`` and the loopback addresses.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from .certificates import Authority

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms that clients may use; ``BrokerSecurity.client_properties`` names the last one."""
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_HOSTS = ("localhost", "127.0.0.1", "::1")

__tracebackhide__ = True  # a failure points at the caller's line


class BrokerSecurity:
    """The certificates and passwords of a broker.

    ``users`` are names with passwords; if there are any, clients log in by PLAIN or SCRAM. With ``tls`` connections are
    encrypted. Files exist until ``close``.
    """

    def __init__(self, users: Mapping[str, str], tls: bool) -> None:
        self.users = users
        with_users = "SASL_SSL" if tls else "SASL_PLAINTEXT"
        self.protocol = with_users if self.users else "SSL" if tls else "PLAINTEXT"
        self.ca_file: Path | None = None
        """The certificate that clients have to trust, in PEM; None without TLS."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tls = tls

    def server_properties(self, listen: str) -> dict[str, str]:
        """The properties of a broker that listens at ``HOST:PORT``, after making its certificates."""
        properties = {"listeners": f"{self.protocol}://{listen}"}
        if self.protocol != "PLAINTEXT":
            properties["security.inter.broker.protocol"] = self.protocol
        if self.users:
            prefix = f"listener.name.{self.protocol.lower()}"
            properties |= {
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                f"{prefix}.plain.sasl.jaas.config": self._jaas_of_plain(),
            }
        if self._tls:
            properties |= self._make_stores()
        return properties

    def _jaas_of_plain(self) -> str:
        own_name, own_password = next(iter(self.users.items()))
        options = {f"user_{name}": password for name, password in self.users.items()}
        return _jaas("PLAIN", {"username": own_name, "password": own_password, **options})

    def _make_stores(self) -> dict[str, str]:
        self._folder = tempfile.TemporaryDirectory(prefix="ottla-certificates-")
        folder = Path(self._folder.name)
        authority = Authority("ottla tests")
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(authority.certificate_pem)
        key_store = folder / "broker.pem"
        key_store.touch(mode=0o600)
        key_store.write_bytes(authority.issue("broker", _HOSTS))
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca_file),
        }

    def client_properties(self, user: str | None = None, mechanism: str = MECHANISMS[-1]) -> dict[str, str]:
        """Kafka's client properties for a user, the first if none is named. Raises KeyError for an unknown user."""
        properties = {"security.protocol": self.protocol}
        if self.users:
            name = next(iter(self.users)) if user is None else user
            login = {"username": name, "password": self.users[name]}
            properties |= {"sasl.mechanism": mechanism, "sasl.jaas.config": _jaas(mechanism, login)}
        elif user is not None:
            raise KeyError(user)
        if self.ca_file is not None:
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca_file)}
        return properties

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _jaas(mechanism: str, options: Mapping[str, str]) -> str:
    return (
        " ".join([f"{_MODULES[mechanism]} required", *(f"{name}={_quoted(each)}" for name, each in options.items())])
        + ";"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
