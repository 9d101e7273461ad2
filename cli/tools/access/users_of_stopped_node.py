"""SCRAM credentials in the log directory of a stopped node that is its own quorum."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ....base.errors import KafkaError
from ....broker.directories.stopped_node import NotItsOwnQuorumError, StoppedNode
from ....controller.quorum.snapshot_records import credential_record
from ....log.checkpoints import LOCK, CorruptFileError
from ....log.disk import OsDisk, join
from ....security.scram import SaltedPassword, ScramCredential, ScramMechanism, credential_from_salted_password
from ....wire.messages.access_records import RemoveUserScramCredentialRecord
from ....wire.metadata_records import VersionedRecord
from ..running import ToolError
from .users_in_store import check_home


class UsersOfStoppedNode:
    """``users.Users`` by the records of the metadata in ``directory``, which may be one that no node has used yet."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def described(self) -> dict[str, dict[ScramMechanism, int]]:
        with self._node() as node:
            return {
                user: {
                    mechanism: each.iterations for mechanism, each in found.items() if isinstance(each, ScramCredential)
                }
                for user, found in node.image.scram.items()
            }

    def set(self, user: str, passwords: Sequence[SaltedPassword]) -> None:
        records: list[VersionedRecord] = []
        for each in passwords:
            credential = credential_from_salted_password(each.mechanism, each.salt, each.salted, each.iterations)
            records.append((credential_record(user, each.mechanism, credential), 0))
        with self._node() as node:
            node.append(records)

    def unset(self, user: str, mechanisms: Sequence[ScramMechanism]) -> None:
        with self._node() as node:
            node.append([(RemoveUserScramCredentialRecord(name=user, mechanism=each), 0) for each in mechanisms])

    @contextlib.contextmanager
    def _node(self) -> Iterator[StoppedNode]:
        """Raises ToolError, OSError."""
        disk, directory = OsDisk(), self._directory
        disk.make_dir(directory)
        try:
            lock = disk.lock(join(directory, LOCK))
        except BlockingIOError:
            raise ToolError(
                f"the log directory {directory} is in use by a broker: name that by --bootstrap-server, or stop it"
            ) from None
        try:
            check_home(disk, directory)
            with contextlib.closing(StoppedNode(disk, directory)) as node:
                yield node
        except (NotItsOwnQuorumError, CorruptFileError) as error:
            raise ToolError(str(error)) from None
        except KafkaError as error:
            raise ToolError(error.message or error.code.name) from None
        finally:
            lock.close()
