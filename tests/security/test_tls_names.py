"""Distinguished names as Java's X500Principal writes them; what is expected was printed by Java 17."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from ottla.security.tls_names import distinguished_name, subject_name

from .helpers import certificates


def der(*parts: tuple[x509.ObjectIdentifier, str]) -> bytes:
    """A name with the parts in this order, which is the reverse of how it is written."""
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in parts]).public_bytes()


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (
            der((NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Acme"), (NameOID.COMMON_NAME, "a b")),
            "CN=a b,O=Acme,C=DE",
        ),
        (der((NameOID.COMMON_NAME, 'a,b+c"d\\e<f>g;h=i#j')), 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j'),
        (der((NameOID.COMMON_NAME, "  x y ")), "CN=\\ \\ x y\\ "),
        (der((NameOID.COMMON_NAME, "  ")), "CN=\\ \\ "),
        (der((NameOID.COMMON_NAME, "Jörg ☃")), "CN=Jörg ☃"),
        (
            der((NameOID.EMAIL_ADDRESS, "me@x.org"), (NameOID.COMMON_NAME, "me")),
            "CN=me,1.2.840.113549.1.9.1=#16086d6540782e6f7267",
        ),
        (der((NameOID.SERIAL_NUMBER, "7"), (NameOID.COMMON_NAME, "me")), "CN=me,2.5.4.5=#130137"),
        (
            der(
                (NameOID.DOMAIN_COMPONENT, "org"),
                (NameOID.DOMAIN_COMPONENT, "example"),
                (NameOID.USER_ID, "u"),
                (NameOID.STREET_ADDRESS, "s"),
                (NameOID.LOCALITY_NAME, "l"),
                (NameOID.STATE_OR_PROVINCE_NAME, "st"),
                (NameOID.ORGANIZATIONAL_UNIT_NAME, "ou"),
            ),
            "OU=ou,ST=st,L=l,STREET=s,UID=u,DC=example,DC=org",
        ),
        (der(), ""),
    ],
)
def test_names_are_written_as_java_writes_them(name: bytes, written: str) -> None:
    assert distinguished_name(name) == written


def test_a_part_may_have_several_attributes() -> None:
    part = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "b")]
    )
    assert distinguished_name(x509.Name([part]).public_bytes()) in ("CN=a+OU=b", "OU=b+CN=a")


def test_a_string_in_another_encoding_is_written_as_java_writes_it() -> None:
    attribute = x509.NameAttribute(NameOID.COMMON_NAME, "ab", _ASN1Type.BMPString)
    assert distinguished_name(x509.Name([attribute]).public_bytes()) == "CN=\\00a\\00b"


def test_the_subject_is_read_from_a_certificate() -> None:
    certificate = x509.load_pem_x509_certificate(certificates.client("bob", "Sales").certificate.encode())
    assert subject_name(certificate.public_bytes(Encoding.DER)) == "CN=bob,OU=Sales"


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x05\x00", b"\x30\x80", b"\x30\x00", b"\x30\x02\x30\x00", b"hello world"]
)
def test_what_is_no_certificate_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        subject_name(data)
