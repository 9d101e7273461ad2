"""Java's names of cipher suites, and OpenSSL's: both mean the number that the protocol has for a suite."""

from __future__ import annotations

import ssl

import pytest

from ottla.security.tls_ciphers import cipher_suites

# IANA's registry of TLS cipher suites: https://www.iana.org/assignments/tls-parameters
NUMBERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": 0xC02C,
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": 0xC02B,
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA9,
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": 0xC030,
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": 0xC02F,
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA8,
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": 0x009F,
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": 0x009E,
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCAA,
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": 0xC024,
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": 0xC028,
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": 0x006B,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": 0xC023,
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": 0xC027,
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": 0x0067,
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": 0xC00A,
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": 0xC014,
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA": 0x0039,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": 0xC009,
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": 0xC013,
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": 0x0033,
    "TLS_RSA_WITH_AES_256_GCM_SHA384": 0x009D,
    "TLS_RSA_WITH_AES_128_GCM_SHA256": 0x009C,
    "TLS_RSA_WITH_AES_256_CBC_SHA256": 0x003D,
    "TLS_RSA_WITH_AES_128_CBC_SHA256": 0x003C,
    "TLS_RSA_WITH_AES_256_CBC_SHA": 0x0035,
    "TLS_RSA_WITH_AES_128_CBC_SHA": 0x002F,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_suite_of_tls_1_2_is_the_same_in_openssl(name: str) -> None:
    suites = cipher_suites([name])
    assert not suites.of_1_3
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(suites.up_to_1_2[0] + ":@SECLEVEL=0")
    chosen = [suite["id"] & 0xFFFF for suite in context.get_ciphers() if suite["protocol"] != "TLSv1.3"]
    assert chosen == [NUMBERS[name]]


def test_suites_of_tls_1_3_have_one_name() -> None:
    suites = cipher_suites(["TLS_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
    assert suites.of_1_3 == {"TLS_AES_256_GCM_SHA384"}
    assert suites.up_to_1_2 == ("ECDHE-RSA-AES128-GCM-SHA256",)
    assert suites.is_allowed("TLS_AES_256_GCM_SHA384") and not suites.is_allowed("TLS_AES_128_GCM_SHA256")
    assert suites.is_allowed("ECDHE-RSA-AES128-GCM-SHA256")


@pytest.mark.parametrize(
    "name",
    [
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDH_RSA_WITH_AES_128_CBC_SHA",
        "TLS_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_RSA_WITH_NULL_SHA256",
        "tls_aes_256_gcm_sha384",
        "",
    ],
)
def test_other_names_are_refused_in_javas_words(name: str) -> None:
    with pytest.raises(ValueError, match=f"Unsupported CipherSuite: {name}"):
        cipher_suites([name])
