"""Development certificates: an authority, and those it signs for brokers and clients (``ottla certs``, the tests).

Keys are for the curve P-256, which every client supports and which costs a tenth of RSA in a handshake. A broker's certificate
names its hosts and can be used at other brokers, too; a client's has the client's name only. All of it is PEM, with keys as
PKCS #8 without a password: whoever can read the file has the key.
"""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_BACKDATED = datetime.timedelta(days=1)  # for clocks that are behind


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """A private key and its certificate, in PEM. ``str()`` and ``repr()`` do not show the key."""

    certificate: str
    key: str = dataclasses.field(repr=False)

    @property
    def key_store(self) -> str:
        """Both in one text, for ``ssl.keystore.location`` with the type PEM."""
        return self.key + self.certificate


def make_authority(name: str, days: int, now: datetime.datetime) -> Identity:
    """An authority that signs others, and trusts itself. ``now`` has a time zone."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    usage = _key_usage(signs_certificates=True)
    builder = (
        _builder(_subject(name), key, days, now)
        .issuer_name(_subject(name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return _signed(builder, key, key)


def issue(
    authority: Identity,
    name: str,
    days: int,
    now: datetime.datetime,
    *,
    hosts: Sequence[str] = (),
    unit: str | None = None,
) -> Identity:
    """A certificate for ``name``: of a broker where ``hosts`` (names and addresses) are given, else of a client.

    ``unit`` becomes the OU of its distinguished name. ``now`` has a time zone. Raises ValueError where ``authority`` is none.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signing_key = load_pem_private_key(authority.key.encode(), None)
    if not isinstance(signing_key, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not one for an elliptic curve")
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        uses.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        _builder(_subject(name, unit), key, days, now)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    return _signed(builder, key, signing_key)


def _subject(name: str, unit: str | None = None) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    units = [] if unit is None else [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)]
    return x509.Name([*units, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, key: EllipticCurvePrivateKey, days: int, now: datetime.datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signed(
    builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, signing_key: EllipticCurvePrivateKey
) -> Identity:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(signing_key, hashes.SHA256()).public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(certificate.decode(), private.decode())
