"""Translation of the cipher suite names in ``ssl.cipher.suites``, which are Java's and IANA's, to OpenSSL's.

Up to TLS 1.2 a suite says how keys are exchanged, how the server is authenticated, and the cipher; a suite of TLS 1.3 the cipher
only. Python's ssl module can choose among those of TLS 1.2, but has all three of TLS 1.3 or none. So a connection that has agreed
on one of these three that the setting does not name is closed after the handshake (``CipherSuites.is_allowed``).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")

_SUITE = re.compile(r"TLS_(ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_([A-Z0-9_]+)")
_KEY_EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "DHE_RSA": "DHE-RSA-", "RSA": ""}
_AUTHENTICATED = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_WITH_CBC = {
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
# There are no suites of these pairs, or OpenSSL has none.
_MISSING = re.compile(
    r"TLS_(RSA_WITH_CHACHA20.*|(DHE_RSA|RSA)_WITH_AES_256_CBC_SHA384|ECDHE_.*_WITH_AES_256_CBC_SHA256)"
)


@dataclasses.dataclass(frozen=True, slots=True)
class CipherSuites:
    """The cipher suites of a setting."""

    up_to_1_2: tuple[str, ...]
    """OpenSSL's names."""
    of_1_3: frozenset[str]
    """These names are the same in Java and OpenSSL."""

    def is_allowed(self, negotiated: str) -> bool:
        """Whether a connection may use a suite, by OpenSSL's name. Of those up to TLS 1.2 only allowed ones are offered."""
        return negotiated not in TLS_1_3 or negotiated in self.of_1_3


def cipher_suites(names: Iterable[str]) -> CipherSuites:
    """The suites of these names. Raises ValueError for one that is not known, in Java's words."""
    up_to_1_2, of_1_3 = [], set()
    for name in names:
        if name in TLS_1_3:
            of_1_3.add(name)
        else:
            up_to_1_2.append(_openssl_name(name))
    return CipherSuites(tuple(up_to_1_2), frozenset(of_1_3))


def _openssl_name(name: str) -> str:
    found = _SUITE.fullmatch(name)
    cipher = None if found is None else _AUTHENTICATED.get(found[2]) or _WITH_CBC.get(found[2])
    if found is None or cipher is None or _MISSING.fullmatch(name):
        raise ValueError(f"Unsupported CipherSuite: {name}")
    return _KEY_EXCHANGES[found[1]] + cipher
