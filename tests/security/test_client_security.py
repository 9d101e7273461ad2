"""Kafka's client properties as clients of other libraries are told them."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest

from ottla.base.files import read_file
from ottla.security import client_security
from ottla.security.client_security import is_about_security, kafka_python_options, librdkafka_options
from ottla.testing.certificates import Authority

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a \\"b\\"; c";'
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def read_client_security(properties: dict[str, str]) -> client_security.ClientSecurity:
    return client_security.read_client_security(properties, read_file)


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, str]:
    """A key store and a trust store in PEM."""
    authority = Authority("ca")
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem)
    (tmp_path / "alice.pem").write_bytes(authority.issue("alice", ["localhost"]))
    return {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "alice.pem"),
    }


def test_nothing_said_is_plaintext() -> None:
    security = read_client_security({"client.id": "x"})
    assert kafka_python_options(security) == {"security_protocol": "PLAINTEXT"}
    assert librdkafka_options(security) == {"security.protocol": "PLAINTEXT"}


def test_a_password_is_read_from_the_jaas_text() -> None:
    properties = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": PLAIN}
    security = read_client_security(properties)
    assert kafka_python_options(security) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a "b"; c',
    }
    assert librdkafka_options(security)["sasl.password"] == 'a "b"; c'
    assert "a " not in repr(security)


def test_stores_are_read_for_each_library(stores: dict[str, str]) -> None:
    security = read_client_security({"security.protocol": "SSL", **stores})
    context = kafka_python_options(security)["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert [dict(rdn[0] for rdn in each["subject"])["commonName"] for each in context.get_ca_certs()] == ["ca"]
    options = librdkafka_options(security)
    assert options["ssl.ca.pem"].strip() == Path(stores["ssl.truststore.location"]).read_text().strip()
    assert options["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----")
    assert "BEGIN CERTIFICATE" in options["ssl.certificate.pem"]
    assert "PRIVATE" not in repr(security)


def test_without_host_names(stores: dict[str, str]) -> None:
    security = read_client_security({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "", **stores})
    assert not kafka_python_options(security)["ssl_context"].check_hostname
    assert librdkafka_options(security)["ssl.endpoint.identification.algorithm"] == "none"


def bearer(**more: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **named}


def test_a_token_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    security = read_client_security(
        bearer(sasl_jaas_config=f"{BEARER};", sasl_oauthbearer_token_endpoint_url=file.as_uri())
    )
    provider = kafka_python_options(security)["sasl_oauth_token_provider"]
    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        assert provider.token() == token
        assert librdkafka_options(security)["oauth_cb"](None)[0] == token


def test_an_unsecured_token_has_the_claims_that_are_named() -> None:
    security = read_client_security(bearer(sasl_jaas_config=f'{BEARER} unsecuredLoginStringClaim_sub="alice";'))
    assert security.token is not None
    head, claims, signature = security.token().split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert (decoded["sub"], decoded["exp"] - decoded["iat"], signature) == ("alice", 3600, "")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism is one of"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "not GSSAPI"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "PLAIN needs sasl.jaas.config"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "x required;"},
            "needs a username",
        ),
        (
            bearer(sasl_jaas_config=f"{BEARER};", sasl_oauthbearer_token_endpoint_url="https://example.org"),
            "from a file: URL only",
        ),
        (bearer(sasl_jaas_config=f"{BEARER};"), "unsecuredLoginStringClaim_sub"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"}, "ssl.truststore.location"),
    ],
)
def test_what_makes_no_sense_is_said(properties: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        read_client_security(properties)
    assert "\n" not in str(error.value)


def test_which_properties_are_read() -> None:
    assert is_about_security("sasl.jaas.config")
    assert is_about_security("ssl.keystore.password")
    assert not is_about_security("acks")
    assert not is_about_security("ssl.cafile")
