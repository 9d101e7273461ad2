"""An authority that signs certificates for tests, made again for each run and good for a day."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from ..security.tls_certificates import issue, make_authority

_DAYS = 1


class Authority:
    """``certificate_pem`` is what those trust who trust it."""

    def __init__(self, name: str) -> None:
        self._identity = make_authority(name, _DAYS, datetime.datetime.now(datetime.UTC))
        self.certificate_pem = self._identity.certificate.encode()

    def issue(self, name: str, hosts: Sequence[str]) -> bytes:
        """For ``CN=name`` at these hosts and addresses, in PEM: the key (PKCS #8, without a password), and the chain."""
        return issue(self._identity, name, _DAYS, datetime.datetime.now(datetime.UTC), hosts=hosts).key_store.encode()
