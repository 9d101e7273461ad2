"""The secret of a cluster: SCRAM with one user whose password is in a file that every node has.

Both sides prove that they have it, and neither tells it (RFC 5802). It guards the controllers' listener while a cluster is
formed and afterwards, and so needs nothing from the metadata log. Kafka's SCRAM has its users in that log, and cannot guard it.
"""

from __future__ import annotations

from pathlib import Path

from ...base.config import Config
from ...base.seams import Workers
from ...base.settings import SettingError
from ...handlers.node_services import NodeServices
from ...security.principal import USER, Principal
from ...security.sasl import SaslClient, SaslServer
from ...security.scram import MIN_ITERATIONS, ScramMechanism, new_credential
from ...security.scram_exchange import ScramClient, ScramServer, ScramUser
from ..formation_settings import SECRET, SECRET_USER, FormationSettings

_LEAST_CHARACTERS = 16
"""A short one could be found from what is heard of one authentication."""


def read_secret(path: str) -> str:
    """What the file has, without white space round it. Raises SettingError, which has no part of it."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingError(SECRET, path, f"it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(SECRET, path, "it is not UTF-8 text") from None
    if len(text) < _LEAST_CHARACTERS:
        raise SettingError(SECRET, path, f"the secret has less than {_LEAST_CHARACTERS} characters")
    return text


def secret_of(config: Config) -> ClusterSecret | None:
    """The secret of the nodes, where there is one. Raises SettingError."""
    path = config.settings(FormationSettings).secret_file
    return None if path is None else ClusterSecret(read_secret(path))


class ClusterSecret:
    """A mechanism of the controllers' listener (``sasl_mechanism.Mechanism``)."""

    background = None

    def __init__(self, secret: str) -> None:
        self._secret = secret
        credential = new_credential(ScramMechanism.SHA_512, secret, MIN_ITERATIONS)
        self._user = ScramUser(Principal(USER, SECRET_USER), credential)

    def server(self, services: NodeServices) -> SaslServer:
        def find(name: str) -> ScramUser | None:
            return self._user if name == SECRET_USER else None

        return ScramServer(ScramMechanism.SHA_512, find, lambda name: None)

    async def client(self, workers: Workers) -> SaslClient:
        return ScramClient(ScramMechanism.SHA_512, SECRET_USER, self._secret)

    def key(self, purpose: str) -> bytes:
        """A key that only who has the secret can make; to be called by a worker, for it takes milliseconds."""
        return ScramMechanism.SHA_512.salted_password(self._secret, purpose.encode(), MIN_ITERATIONS)
