"""Settings of the ZooKeeper connection under Kafka's names, and values derived from several of them.

Kafka takes the name and password for ZooKeeper from the ``Client`` section of a JAAS file that its JVM is pointed at. There
is no JVM here, so they are properties of Ottla's own. Stores of keys are PEM files; a Java one is converted with
``keytool -importkeystore`` and ``openssl pkcs12``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ....base.addresses import join_host_port, split_host_port
from ....base.settings import ConfigValueType, SettingError, Settings, setting

if TYPE_CHECKING:
    import ssl

DEFAULT_ZOOKEEPER_PORT = 2181

CONNECT = "zookeeper.connect"
USERNAME = "zookeeper.sasl.username"
PASSWORD = "zookeeper.sasl.password"
KEYSTORE = "zookeeper.ssl.keystore.location"
TRUSTSTORE = "zookeeper.ssl.truststore.location"
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


class ZooKeeperAddress(NamedTuple):
    """Where the cluster's state is: servers of one ensemble, and the node under which everything lies ('' for the root)."""

    servers: tuple[tuple[str, int], ...]
    chroot: str

    def __str__(self) -> str:
        return ",".join(join_host_port(*server) for server in self.servers) + self.chroot


def parse_zookeeper_address(text: str) -> ZooKeeperAddress:
    """``host:port,host:port/chroot``; 2181 is the port where none is given. Raises ValueError, whose text is one line."""
    hosts, slash, chroot = text.partition("/")
    servers = tuple(split_host_port(host.strip(), DEFAULT_ZOOKEEPER_PORT) for host in hosts.split(",") if host.strip())
    if not servers or not all(host for host, _ in servers):
        raise ValueError(f"{text!r} names no server")
    if chroot and not all(name and name not in (".", "..") for name in chroot.split("/")):
        raise ValueError(f"{slash + chroot!r} is not a path of ZooKeeper")
    return ZooKeeperAddress(servers, slash + chroot if chroot else "")


def _why_not_an_address(text: str) -> str | None:
    try:
        parse_zookeeper_address(text)
    except ValueError as error:
        return str(error)
    return None


def _why_not_checked(is_asked: bool) -> str | None:
    return "revoked certificates are not detected: there are neither revocation lists nor OCSP" if is_asked else None


class ZooKeeperSettings(Settings):
    """The ZooKeeper that keeps the state of a cluster of several brokers, and how it is reached."""

    connect: str | None = setting(
        CONNECT,
        default=None,
        check=_why_not_an_address,
        doc="The servers of the ensemble, HOST:PORT with commas between, and after them the path under which the cluster's "
        "state lies (/kafka), which is made if it does not exist. Without it the broker is alone and keeps its own state.",
    )
    session_timeout_ms: int = setting(
        "zookeeper.session.timeout.ms",
        default=18000,
        at_least=1,
        doc="How long a broker that ZooKeeper does not hear from stays a member of the cluster. ZooKeeper has bounds of its "
        "own: minSessionTimeout and maxSessionTimeout, 2 and 20 ticks if not given.",
    )
    connection_timeout_ms: int | None = setting(
        "zookeeper.connection.timeout.ms",
        default=None,
        at_least=1,
        doc="How long to try to open a session; zookeeper.session.timeout.ms where not given.",
    )
    max_in_flight_requests: int = setting(
        "zookeeper.max.in.flight.requests",
        default=100,
        at_least=1,
        at_most=100,
        doc="How many requests to ZooKeeper wait for their answers at a time, before the next one is sent. Kafka's default of 10 "
        "has a new controller wait for each ten partitions that it reads.",
    )
    set_acl: bool = setting(
        "zookeeper.set.acl",
        default=False,
        doc="Whether only this user may change the nodes that the broker makes in ZooKeeper. It needs zookeeper.sasl.username, "
        "or a certificate of the broker's own (zookeeper.ssl.keystore.location).",
    )
    username: str | None = setting(
        USERNAME,
        default=None,
        doc="Name to authenticate with at ZooKeeper (SASL, DIGEST-MD5). Ottla's own property: what Kafka has as username of "
        "DigestLoginModule in the Client section of its JAAS file.",
    )
    password: str | None = setting(
        PASSWORD, kind=ConfigValueType.PASSWORD, default=None, doc="The password for it; Ottla's own property."
    )
    ssl_client_enable: bool = setting(
        "zookeeper.ssl.client.enable",
        default=False,
        doc="Whether ZooKeeper is reached by TLS. zookeeper.clientCnxnSocket, which Kafka needs beside it, is not needed.",
    )
    ssl_keystore_location: str | None = setting(
        KEYSTORE,
        default=None,
        doc="File with this broker's private key and certificates, for a ZooKeeper that asks for them.",
    )
    ssl_keystore_password: str | None = setting(
        "zookeeper.ssl.keystore.password",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="Password of the private key in it.",
    )
    ssl_keystore_type: str = setting(
        "zookeeper.ssl.keystore.type", default="PEM", choices=("PEM",), doc="Format of it; Kafka takes Java's, too."
    )
    ssl_truststore_location: str | None = setting(
        TRUSTSTORE,
        default=None,
        doc="File with the certificates that ZooKeeper's is to be signed by; those of the system where not given.",
    )
    ssl_truststore_type: str = setting(
        "zookeeper.ssl.truststore.type", default="PEM", choices=("PEM",), doc="Format of it; Kafka takes Java's, too."
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "zookeeper.ssl.endpoint.identification.algorithm",
        default="HTTPS",
        choices=("HTTPS", ""),
        doc="HTTPS: ZooKeeper's certificate has to name the host that zookeeper.connect names; empty: it need not.",
    )
    ssl_protocol: str | None = setting(
        "zookeeper.ssl.protocol",
        default=None,
        choices=TLS_VERSIONS,
        doc="The version of TLS, where zookeeper.ssl.enabled.protocols is not given; without either both are used, where Kafka's "
        "default is TLSv1.2.",
    )
    ssl_enabled_protocols: tuple[str, ...] | None = setting(
        "zookeeper.ssl.enabled.protocols",
        default=None,
        choices=TLS_VERSIONS,
        doc="The versions of TLS that are used; zookeeper.ssl.protocol if not given.",
    )
    ssl_crl_enable: bool = setting(
        "zookeeper.ssl.crl.enable",
        default=False,
        check=_why_not_checked,
        doc="In Kafka, whether lists of revoked certificates are fetched. True is refused here.",
    )
    ssl_ocsp_enable: bool = setting(
        "zookeeper.ssl.ocsp.enable",
        default=False,
        check=_why_not_checked,
        doc="In Kafka, whether OCSP tells if a certificate is revoked. True is refused here.",
    )


class SaslCredentials(NamedTuple):
    """A name and its password."""

    username: str
    password: str


def sasl_credentials(settings: ZooKeeperSettings) -> SaslCredentials | None:
    """What to authenticate with, if anything. Raises SettingError when one of the two is missing."""
    if settings.username is None and settings.password is None:
        return None
    if settings.username is None:
        raise SettingError(USERNAME, "(none)", f"{PASSWORD} is given without it")
    if settings.password is None:
        raise SettingError(PASSWORD, "(none)", f"{USERNAME} is given without it")
    return SaslCredentials(settings.username, settings.password)


def check_acl(settings: ZooKeeperSettings) -> None:
    """Nodes that only their creator may change need one who has a name (KafkaServer.initZkClient). Raises SettingError."""
    has_certificate = settings.ssl_client_enable and settings.ssl_keystore_location is not None
    if settings.set_acl and sasl_credentials(settings) is None and not has_certificate:
        raise SettingError(
            "zookeeper.set.acl", "true", f"the broker has no name at ZooKeeper: give {USERNAME} or {KEYSTORE}"
        )


def tls_context(settings: ZooKeeperSettings) -> ssl.SSLContext | None:
    """For connections to ZooKeeper; None for plain ones. Raises SettingError when a file cannot be used."""
    if not settings.ssl_client_enable:
        return None
    import ssl  # few brokers need it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(settings.ssl_endpoint_identification_algorithm)
    one = TLS_VERSIONS if settings.ssl_protocol is None else (settings.ssl_protocol,)
    versions = settings.ssl_enabled_protocols or one
    known = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    context.minimum_version = min(known[version] for version in versions)
    context.maximum_version = max(known[version] for version in versions)
    truststore, keystore = settings.ssl_truststore_location, settings.ssl_keystore_location
    if truststore is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        try:
            context.load_verify_locations(truststore)
        except OSError as error:
            raise SettingError(TRUSTSTORE, truststore, f"no certificates in PEM format: {error}") from None
    if keystore is not None:
        try:
            context.load_cert_chain(keystore, password=settings.ssl_keystore_password or "")
        except OSError as error:
            raise SettingError(KEYSTORE, keystore, f"no key and certificate in PEM format: {error}") from None
    return context
