"""A certificate authority for tests, created anew for each run and valid for a day."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from ..security.tls_certificates import issue, make_authority

_DAYS = 1


class Authority:
    """An authority that issues certificates for tests."""

    def __init__(self, name: str) -> None:
        self._identity = make_authority(name, _DAYS, datetime.datetime.now(datetime.UTC))
        self.certificate_pem = self._identity.certificate.encode()
        """Its own certificate, for trust stores."""

    def issue(self, name: str, hosts: Sequence[str]) -> bytes:
        """The key (PKCS #8, without a password) and certificate of ``CN=name`` for these hosts and addresses, in PEM."""
        return issue(self._identity, name, _DAYS, datetime.datetime.now(datetime.UTC), hosts=hosts).key_store.encode()
