"""TLS settings under Kafka's names, for all listeners or for one (``listener.name.<listener>.ssl.client.auth``)."""

from __future__ import annotations

from collections.abc import Callable

from ..base.settings import ConfigValueType, Settings, setting

PEM = "PEM"
_STORE_TYPES = ("JKS", "PKCS12", PEM)
_PROTOCOLS = ("TLSv1.3", "TLSv1.2", "TLSv1.1", "TLSv1", "TLS", "SSL", "SSLv2", "SSLv2Hello", "SSLv3")
_DEFAULT_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


# The parsers of these two settings are imported only where one is given: few brokers have them, and each start imports this file.


def _why_no_suites(names: tuple[str, ...]) -> str | None:
    from .tls_ciphers import cipher_suites

    return _why_not(lambda: cipher_suites(names))


def _why_no_rules(text: str) -> str | None:
    from .tls_principal_rules import PrincipalRules

    return _why_not(lambda: PrincipalRules(text))


def _why_not(parse: Callable[[], object]) -> str | None:
    try:
        parse()
    except ValueError as error:
        return str(error)
    return None


def _check_store_type(value: str) -> str | None:
    return None if value == PEM or value.upper() in _STORE_TYPES[:2] else "must be JKS, PKCS12 or PEM"


def _no_class(value: str) -> str | None:
    return None if value == _DEFAULT_BUILDER else "a class of Java cannot be loaded here"


class TlsSettings(Settings):
    """Keys, certificates, and whether clients need a certificate."""

    protocol: str = setting(
        "ssl.protocol",
        default="TLSv1.3",
        choices=_PROTOCOLS,
        doc="TLSv1.2 limits connections to other brokers to it. With another value ssl.enabled.protocols decides.",
    )
    enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols",
        default=("TLSv1.2", "TLSv1.3"),
        choices=_PROTOCOLS,
        doc="The protocols that are enabled. Protocols before TLSv1.2 never are, even if they are named here.",
    )
    cipher_suites: tuple[str, ...] = setting(
        "ssl.cipher.suites",
        default=(),
        check=_why_no_suites,
        doc="The cipher suites, by Java's names; if empty, all that OpenSSL considers safe. A connection that agrees on a suite "
        "of TLSv1.3 that is not named is closed.",
    )
    client_auth: str = setting(
        "ssl.client.auth",
        default="none",
        choices=("required", "requested", "none"),
        doc="Whether clients need a certificate. For a SASL_SSL listener it needs the listener's prefix.",
    )
    principal_mapping_rules: str = setting(
        "ssl.principal.mapping.rules",
        default="DEFAULT",
        check=_why_no_rules,
        doc="Rules that turn the name in a client's certificate into the principal: "
        "RULE:pattern/replacement/[LU] or DEFAULT, separated by commas. The first that matches the whole "
        "name applies.",
    )
    principal_builder_class: str = setting(
        "principal.builder.class",
        kind=ConfigValueType.CLASS,
        default=_DEFAULT_BUILDER,
        check=_no_class,
        doc="Only Kafka's default: Java classes cannot be loaded.",
    )
    engine_factory_class: str | None = setting(
        "ssl.engine.factory.class",
        kind=ConfigValueType.CLASS,
        default=None,
        check=_no_class,
        doc="Refused: Java classes cannot be loaded.",
    )
    endpoint_identification_algorithm: str = setting(
        "ssl.endpoint.identification.algorithm",
        default="https",
        doc="On connections to other brokers: https requires the host's name in the broker's certificate; empty "
        "does not.",
    )
    keystore_type: str = setting(
        "ssl.keystore.type",
        default="JKS",
        check=_check_store_type,
        dynamic=True,
        doc="JKS, PKCS12 or PEM. Which of the first two it is, is read from the file itself.",
    )
    keystore_location: str | None = setting(
        "ssl.keystore.location",
        default=None,
        dynamic=True,
        doc="File with the private key and its certificates. Setting it at run time reads a changed file again.",
    )
    keystore_password: str | None = setting(
        "ssl.keystore.password",
        kind=ConfigValueType.PASSWORD,
        default=None,
        dynamic=True,
        doc="Password of that file; with PEM it must not be given.",
    )
    key_password: str | None = setting(
        "ssl.key.password",
        kind=ConfigValueType.PASSWORD,
        default=None,
        dynamic=True,
        doc="Password of the private key. In JKS the default is the file's password; in PKCS12 it has no effect.",
    )
    keystore_key: str | None = setting(
        "ssl.keystore.key",
        kind=ConfigValueType.PASSWORD,
        default=None,
        dynamic=True,
        doc="The private key itself, as PKCS #8 in PEM.",
    )
    keystore_certificate_chain: str | None = setting(
        "ssl.keystore.certificate.chain",
        kind=ConfigValueType.PASSWORD,
        default=None,
        dynamic=True,
        doc="The certificates that go with ssl.keystore.key, in PEM.",
    )
    truststore_type: str = setting(
        "ssl.truststore.type", default="JKS", check=_check_store_type, dynamic=True, doc="As ssl.keystore.type."
    )
    truststore_location: str | None = setting(
        "ssl.truststore.location",
        default=None,
        dynamic=True,
        doc="File with the trusted certificates; by default the system's.",
    )
    truststore_password: str | None = setting(
        "ssl.truststore.password",
        kind=ConfigValueType.PASSWORD,
        default=None,
        dynamic=True,
        doc="Password of that file. A JKS file can be read without it, but then its checksum is not checked.",
    )
    truststore_certificates: str | None = setting(
        "ssl.truststore.certificates",
        kind=ConfigValueType.PASSWORD,
        default=None,
        dynamic=True,
        doc="The trusted certificates themselves, in PEM.",
    )
    allow_dn_changes: bool = setting(
        "ssl.allow.dn.changes",
        default=False,
        doc="Whether a key store that is read again at run time may have another distinguished name.",
    )
    allow_san_changes: bool = setting(
        "ssl.allow.san.changes",
        default=False,
        doc="Whether a key store that is read again at run time may lack an alternative name of the previous one.",
    )
