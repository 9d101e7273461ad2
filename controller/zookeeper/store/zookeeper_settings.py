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
    """``host:port,host:port/chroot``; 2181 is the default port. Raises ValueError, whose text is one line."""
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
    """The ZooKeeper of a cluster, and the connection to it."""

    connect: str | None = setting(
        CONNECT,
        default=None,
        check=_why_not_an_address,
        doc="Servers of the ensemble, HOST:PORT separated by commas, followed by the path of the cluster's state "
        "(/kafka), which is created if it does not exist. Without it the broker keeps its own state.",
    )
    session_timeout_ms: int = setting(
        "zookeeper.session.timeout.ms",
        default=18000,
        at_least=1,
        doc="Time without contact after which ZooKeeper removes a broker from the cluster. ZooKeeper limits it: "
        "minSessionTimeout and maxSessionTimeout, by default 2 and 20 ticks.",
    )
    connection_timeout_ms: int | None = setting(
        "zookeeper.connection.timeout.ms",
        default=None,
        at_least=1,
        doc="Time to open a session; by default zookeeper.session.timeout.ms.",
    )
    max_in_flight_requests: int = setting(
        "zookeeper.max.in.flight.requests",
        default=100,
        at_least=1,
        at_most=100,
        doc="Most requests to ZooKeeper in flight. With Kafka's default of 10 a new controller waits after every "
        "ten partitions that it reads.",
    )
    set_acl: bool = setting(
        "zookeeper.set.acl",
        default=False,
        doc="Whether only this user may change the nodes that the broker creates in ZooKeeper. It needs "
        "zookeeper.sasl.username, or a certificate for the broker (zookeeper.ssl.keystore.location).",
    )
    username: str | None = setting(
        USERNAME,
        default=None,
        doc="Name for authentication at ZooKeeper (SASL, DIGEST-MD5). Ottla's own property: in Kafka it is the "
        "username of DigestLoginModule in the Client section of the JAAS file.",
    )
    password: str | None = setting(
        PASSWORD, kind=ConfigValueType.PASSWORD, default=None, doc="The password for it; Ottla's own property."
    )
    ssl_client_enable: bool = setting(
        "zookeeper.ssl.client.enable",
        default=False,
        doc="Whether connections to ZooKeeper use TLS. Unlike Kafka, Ottla does not need "
        "zookeeper.clientCnxnSocket for it.",
    )
    ssl_keystore_location: str | None = setting(
        KEYSTORE,
        default=None,
        doc="File with this broker's private key and certificates, if ZooKeeper requires them.",
    )
    ssl_keystore_password: str | None = setting(
        "zookeeper.ssl.keystore.password",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="Password of the private key in it.",
    )
    ssl_keystore_type: str = setting(
        "zookeeper.ssl.keystore.type",
        default="PEM",
        choices=("PEM",),
        doc="Format of the file. Kafka accepts Java's formats in addition.",
    )
    ssl_truststore_location: str | None = setting(
        TRUSTSTORE,
        default=None,
        doc="File with the certificates that may sign ZooKeeper's; by default the system's.",
    )
    ssl_truststore_type: str = setting(
        "zookeeper.ssl.truststore.type",
        default="PEM",
        choices=("PEM",),
        doc="Format of the file. Kafka accepts Java's formats in addition.",
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "zookeeper.ssl.endpoint.identification.algorithm",
        default="HTTPS",
        choices=("HTTPS", ""),
        doc="HTTPS requires the host name of zookeeper.connect in ZooKeeper's certificate; empty does not.",
    )
    ssl_protocol: str | None = setting(
        "zookeeper.ssl.protocol",
        default=None,
        choices=TLS_VERSIONS,
        doc="Version of TLS, if zookeeper.ssl.enabled.protocols is not set. Without either, TLSv1.2 and TLSv1.3 "
        "are used (Kafka's default is TLSv1.2).",
    )
    ssl_enabled_protocols: tuple[str, ...] | None = setting(
        "zookeeper.ssl.enabled.protocols",
        default=None,
        choices=TLS_VERSIONS,
        doc="Versions of TLS; by default zookeeper.ssl.protocol.",
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
        doc="In Kafka, whether OCSP checks that a certificate is not revoked. True is refused here.",
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
