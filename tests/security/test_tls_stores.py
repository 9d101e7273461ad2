"""Key stores and trust stores of all kinds, as Java's keytool, OpenSSL and ``ottla certs`` write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.settings import SettingError
from ottla.security.tls_jks import read_jks
from ottla.security.tls_material import TlsMaterial, read_material
from ottla.security.tls_names import subject_name
from ottla.security.tls_settings import TlsSettings
from ottla.security.tls_stores import read_key_store, read_pem_certificates, read_pem_key, read_trust_store

from .helpers.certificates import authority, broker, client
from .helpers.java_key_stores import KEY_STORE_JKS, KEY_STORE_PKCS12, TRUST_STORE_JKS, TRUST_STORE_PKCS12


def public_key(key: bytes) -> object:
    return load_der_private_key(key, None).public_key().public_numbers()  # type: ignore[union-attr]


@pytest.mark.parametrize(("data", "key_password"), [(KEY_STORE_JKS, "keysecret"), (KEY_STORE_PKCS12, None)])
def test_a_key_store_of_keytool_is_read(data: bytes, key_password: str | None) -> None:
    entry = read_key_store(data, "storesecret", key_password)
    assert subject_name(entry.chain[0]) == "CN=broker,OU=Ops,O=Acme"
    certificate = x509.load_der_x509_certificate(entry.chain[0])
    assert public_key(entry.key) == certificate.public_key().public_numbers()  # type: ignore[union-attr]
    assert "secret" not in repr(entry) and entry.key.hex() not in repr(entry) and repr(entry.key) not in repr(entry)


@pytest.mark.parametrize("data", [TRUST_STORE_JKS, TRUST_STORE_PKCS12])
def test_a_trust_store_of_keytool_is_read(data: bytes) -> None:
    assert [subject_name(each) for each in read_trust_store(data, "trustsecret")] == ["CN=broker,OU=Ops,O=Acme"]


def test_a_trust_store_in_jks_needs_no_password() -> None:
    assert read_trust_store(TRUST_STORE_JKS, None) == read_trust_store(TRUST_STORE_JKS, "trustsecret")


def test_the_owners_certificate_of_a_key_store_can_be_trusted() -> None:
    assert read_trust_store(KEY_STORE_JKS, "storesecret") == read_trust_store(TRUST_STORE_JKS, None)
    assert read_trust_store(KEY_STORE_PKCS12, "storesecret") == read_trust_store(TRUST_STORE_JKS, None)


@pytest.mark.parametrize(
    ("data", "password", "key_password", "why"),
    [
        (KEY_STORE_JKS, "wrong", "keysecret", "keystore password was incorrect"),
        (KEY_STORE_JKS, "storesecret", None, "the key's password is wrong"),
        (KEY_STORE_PKCS12, "wrong", None, "the password was incorrect"),
        (KEY_STORE_JKS[:-30] + bytes(30), "storesecret", "keysecret", "or the file was changed"),
        (TRUST_STORE_JKS, "trustsecret", None, "no private key"),
        (TRUST_STORE_PKCS12, "trustsecret", None, "no private key"),
        (b"\xce\xce\xce\xce" + bytes(50), "x", None, "keytool -importkeystore"),
        (b"no store at all", "x", None, "not a JKS key store"),
        (b"", "x", None, "not a JKS key store"),
    ],
)
def test_a_key_store_that_cannot_be_used_says_why(
    data: bytes, password: str, key_password: str | None, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        read_key_store(data, password, key_password)


@given(st.integers(0, len(KEY_STORE_JKS) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_jks_is_a_value_error_or_another_store(position: int, damage: bytes) -> None:
    data = KEY_STORE_JKS[:position] + damage + KEY_STORE_JKS[position + len(damage) :]
    with pytest.raises(ValueError, match=r"."):
        read_jks(data[: max(position, 1)], None)
    try:
        read_jks(data, None)
    except ValueError:
        pass


def test_a_chain_in_pkcs12_is_put_in_order() -> None:
    key = load_pem_private_key(broker().key.encode(), None)
    own, issuer, other = (
        x509.load_pem_x509_certificate(i.certificate.encode()) for i in (broker(), authority(), client())
    )
    store = pkcs12.serialize_key_and_certificates(
        b"x",
        key,  # type: ignore[arg-type]
        own,
        [other, issuer],
        BestAvailableEncryption(b"secret"),
    )
    assert [subject_name(each) for each in read_key_store(store, "secret", None).chain] == ["CN=broker", "CN=CA"]


def encrypted(password: bytes) -> str:
    key = load_pem_private_key(broker().key.encode(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password)).decode()


def test_pem_may_be_one_line_with_words_around_it() -> None:
    text = "Bag Attributes\n  friendlyName: x\n" + broker().key_store
    entry = read_pem_key(text, text, None)
    joined = " ".join(text.split("\n"))
    assert read_pem_key(joined, joined, None) == entry
    assert [subject_name(each) for each in entry.chain] == ["CN=broker"]


def test_a_key_in_pem_may_be_encrypted() -> None:
    plain = read_pem_key(broker().key, broker().certificate, None)
    entry = read_pem_key(encrypted(b"secret"), broker().certificate, "secret")
    assert public_key(entry.key) == public_key(plain.key)


@pytest.mark.parametrize(
    ("key", "password", "why"),
    [
        (lambda: encrypted(b"secret"), "wrong", "the key cannot be decrypted"),
        (lambda: encrypted(b"secret"), None, "the key is encrypted"),
        (lambda: broker().key, "secret", "the key has no password"),
        (lambda: broker().key.replace("PRIVATE", "RSA PRIVATE"), None, "RSA PRIVATE KEY, and only PKCS #8 is read"),
        (lambda: broker().key * 2, None, "one private key was expected, and there are 2"),
        (lambda: "", None, "no private key in PEM"),
        (lambda: "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n", None, "malformed PEM"),
    ],
)
def test_a_key_in_pem_that_cannot_be_used_says_why(key, password: str | None, why: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=why):
        read_pem_key(key(), broker().certificate, password)


def test_trust_in_pem_may_have_several_certificates() -> None:
    both = read_pem_certificates(authority().certificate + client().certificate)
    assert [subject_name(each) for each in both] == ["CN=CA", "CN=alice"]
    with pytest.raises(ValueError, match="no certificate in PEM"):
        read_pem_certificates(broker().key)


# --- by settings ------------------------------------------------------------------------------------------------------


def material(**properties: str) -> TlsMaterial:
    settings = TlsSettings.from_properties(
        {f"ssl.{name.replace('_', '.')}": value for name, value in properties.items()}
    )
    return read_material(settings, lambda path: Path(path).read_bytes())


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    (tmp_path / "k.jks").write_bytes(KEY_STORE_JKS)
    (tmp_path / "k.p12").write_bytes(KEY_STORE_PKCS12)
    (tmp_path / "k.pem").write_text(broker().key_store)
    (tmp_path / "t.pem").write_text(authority().certificate)
    return tmp_path


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "jks"])
def test_type_and_content_of_a_binary_store_may_disagree(stores: Path, kind: str) -> None:
    for name in ("k.jks", "k.p12"):
        found = material(
            keystore_type=kind,
            keystore_location=str(stores / name),
            keystore_password="storesecret",
            key_password="keysecret",
        )
        assert found.key is not None and found.trusted is None


def test_pem_is_read_from_files_and_from_the_settings_themselves(stores: Path) -> None:
    of_files = material(
        keystore_type="PEM",
        keystore_location=str(stores / "k.pem"),
        truststore_type="PEM",
        truststore_location=str(stores / "t.pem"),
    )
    assert of_files == material(
        keystore_type="PEM",
        keystore_key=broker().key,
        keystore_certificate_chain=broker().certificate,
        truststore_type="PEM",
        truststore_certificates=authority().certificate,
    )


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"keystore_key": "secret"}, "can be specified only for PEM, but key store type is JKS"),
        ({"keystore_type": "PEM", "keystore_key": "secret"}, "certificate chain is not specified"),
        ({"keystore_type": "PEM", "keystore_certificate_chain": "secret"}, "private key is not specified"),
        (
            {
                "keystore_type": "PEM",
                "keystore_key": "secret",
                "keystore_certificate_chain": "c",
                "keystore_location": "f",
            },
            "Both SSL key store location and separate private key",
        ),
        (
            {
                "keystore_type": "PEM",
                "keystore_key": "x",
                "keystore_certificate_chain": "c",
                "keystore_password": "secret",
            },
            "only key password may be specified",
        ),
        ({"keystore_type": "PEM", "keystore_location": "f", "keystore_password": "secret"}, "only key password"),
        ({"keystore_password": "secret"}, "SSL key store is not specified"),
        ({"keystore_location": "f"}, "key store password is not specified"),
        ({"keystore_location": "/nowhere/f", "keystore_password": "secret"}, "No such file"),
        ({"truststore_certificates": "secret"}, "can be specified only for PEM"),
        ({"truststore_type": "PEM", "truststore_certificates": "secret", "truststore_location": "f"}, "Both SSL trust"),
        (
            {"truststore_type": "PEM", "truststore_certificates": "x", "truststore_password": "secret"},
            "cannot be specified",
        ),
        (
            {"truststore_type": "PEM", "truststore_location": "f", "truststore_password": "secret"},
            "cannot be specified",
        ),
        ({"truststore_password": "secret"}, "SSL trust store is not specified"),
        ({"keystore_type": "PEM", "keystore_key": "secret", "keystore_certificate_chain": "secret"}, "no private key"),
    ],
)
def test_settings_that_exclude_one_another_are_refused_in_kafkas_words(properties: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError, match=why) as refused:
        material(**properties)
    assert "secret" not in str(refused.value)


def test_pem_is_told_apart_from_the_rest(stores: Path) -> None:
    with pytest.raises(SettingError, match=r"the file is PEM: set ssl.keystore.type=PEM"):
        material(keystore_location=str(stores / "k.pem"), keystore_password="x")
    with pytest.raises(SettingError, match="the file is not PEM"):
        material(keystore_type="PEM", keystore_location=str(stores / "k.jks"))
