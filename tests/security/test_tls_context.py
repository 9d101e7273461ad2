"""What settings make of a handshake; each is tried between two real ends in memory."""

from __future__ import annotations

import ssl

import pytest

from ottla.base.settings import SettingError
from ottla.security.tls_context import client_context, reason, server_context, shake_hands

from .helpers import certificates
from .helpers.certificates import authority, broker, client, parsed, settings_of


def server(**more: str) -> ssl.SSLContext:
    return server_context(*parsed(settings_of(broker(), **more)))


def opened(identity: certificates.Identity | None = None, **more: str) -> ssl.SSLContext:
    return client_context(*parsed(settings_of(identity, **more)))


def meet(server_side: ssl.SSLContext, client_side: ssl.SSLContext, host: str = "test") -> ssl.SSLObject:
    """The server's end of a connection that the client has opened to ``host``. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client_side.wrap_bio(to_client, to_server, server_hostname=host)
    far = server_side.wrap_bio(to_server, to_client, server_side=True)
    waiting = [near, far]
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    return far


def test_the_newest_protocol_is_spoken() -> None:
    assert meet(server(), opened()).version() == "TLSv1.3"


@pytest.mark.parametrize(
    ("of_server", "of_client", "version"),
    [
        ({"ssl_enabled_protocols": "TLSv1.2"}, {}, "TLSv1.2"),
        ({}, {"ssl_enabled_protocols": "TLSv1.2"}, "TLSv1.2"),
        ({}, {"ssl_protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl_protocol": "TLSv1.2"}, {}, "TLSv1.3"),
        ({"ssl_enabled_protocols": "TLSv1.3,TLSv1.1"}, {}, "TLSv1.3"),
        ({"ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, {}, "TLSv1.2"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, {}, "TLSv1.3"),
    ],
)
def test_protocols_and_suites_decide_on_the_version(
    of_server: dict[str, str], of_client: dict[str, str], version: str
) -> None:
    assert meet(server(**of_server), opened(**of_client)).version() == version


def test_a_suite_is_chosen_among_those_named() -> None:
    name = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    cipher = meet(server(ssl_cipher_suites=name), opened()).cipher()
    assert cipher is not None and cipher[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"


def test_versions_that_have_none_in_common_do_not_meet() -> None:
    with pytest.raises(ssl.SSLError):
        meet(server(ssl_enabled_protocols="TLSv1.2"), opened(ssl_enabled_protocols="TLSv1.3"))


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_a_client_shows_a_certificate_where_it_is_asked_for_one(client_auth: str) -> None:
    shown = meet(server(ssl_client_auth=client_auth), opened(client())).getpeercert(binary_form=True)
    assert (shown is None) == (client_auth == "none")


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_a_client_without_a_certificate_is_let_in_unless_one_is_required(client_auth: str) -> None:
    if client_auth == "required":
        with pytest.raises(ssl.SSLError) as refused:
            meet(server(ssl_client_auth=client_auth), opened())
        assert reason(refused.value) == "peer did not return a certificate"
    else:
        assert meet(server(ssl_client_auth=client_auth), opened()).getpeercert(binary_form=True) is None


def test_a_certificate_of_another_authority_is_refused_on_either_side() -> None:
    foreign = certificates.make_authority("Other", 30, certificates.now())
    stranger = certificates.issue(foreign, "alice", 30, certificates.now())
    with pytest.raises(ssl.SSLError):
        meet(server(ssl_client_auth="requested"), opened(stranger))
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        meet(server(), client_context(*parsed(settings_of(None, trusted=foreign))))


def test_a_certificate_that_is_trusted_itself_needs_no_authority() -> None:
    trusting = client_context(*parsed(settings_of(None, trusted=broker())))
    assert meet(server(), trusting).version() == "TLSv1.3"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_host_is_one_that_the_certificate_names(host: str) -> None:
    meet(server(), opened(), host)


@pytest.mark.parametrize("host", ["elsewhere", "127.0.0.2"])
def test_another_host_is_refused_unless_names_are_not_checked(host: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(server(), opened(), host)
    meet(server(), opened(ssl_endpoint_identification_algorithm=""), host)


def test_brokers_can_speak_to_one_another_by_their_own_stores() -> None:
    shake_hands(server(ssl_client_auth="required"), opened(broker()))
    with pytest.raises(ssl.SSLError):
        shake_hands(server(ssl_client_auth="required"), opened())


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ssl_enabled_protocols": "TLSv1.1"}, "no such version is available"),
        (
            {"ssl_enabled_protocols": "TLSv1.3", "ssl_cipher_suites": "TLS_RSA_WITH_AES_128_GCM_SHA256"},
            "no such version",
        ),
        ({"ssl_cipher_suites": "RC4"}, "Unsupported CipherSuite: RC4"),
        ({"ssl_client_auth": "maybe"}, "String must be one of"),
        ({"ssl_endpoint_identification_algorithm": "ldaps"}, "https or empty"),
        ({"ssl_engine_factory_class": "my.Engine"}, "a class of Java cannot be loaded"),
        ({"principal_builder_class": "my.Builder"}, "a class of Java cannot be loaded"),
        ({"ssl_principal_mapping_rules": "RULE:"}, "does not end with /"),
        ({"ssl_keystore_type": "BKS"}, "must be JKS, PKCS12 or PEM"),
    ],
)
def test_settings_that_make_no_sense_are_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        server_context(*parsed(settings_of(broker(), **more)))
        opened(**more)


def test_a_listener_needs_a_key() -> None:
    with pytest.raises(SettingError, match="needs a key store"):
        server_context(*parsed(settings_of(None)))


def test_a_key_that_is_not_the_certificates_is_refused_without_showing_it() -> None:
    mixed = certificates.Identity(broker().certificate, authority().key)
    with pytest.raises(SettingError, match="key values mismatch") as refused:
        server_context(*parsed(settings_of(mixed)))
    assert "PRIVATE" not in str(refused.value)
