"""``ottla users add | list | remove``: SCRAM credentials, by requests to brokers or directly in the cluster's store.

A password is never an argument, because other users of the machine see those; at brokers it is not sent either, but its salted
hash (KIP-554).
"""

from __future__ import annotations

import dataclasses
import getpass
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import kafka.errors
from kafka.protocol.admin import AlterUserScramCredentialsRequest

from ....base.wording import meant
from ....security.scram import SCRAM_MECHANISMS, SaltedPassword, ScramMechanism, new_nonce
from ..client import Admin, ClusterConnection
from ..output import OutputColumn, print_rows
from ..running import ToolError, UsageError, refusal

COLUMNS = (OutputColumn("user"), OutputColumn("mechanism"), OutputColumn("iterations", is_number=True))


class Users(Protocol):
    """Where the credentials are. Each raises ToolError, KafkaError or OSError."""

    def described(self) -> dict[str, dict[ScramMechanism, int]]:
        """Iterations by user and mechanism."""
        ...

    def set(self, user: str, passwords: Sequence[SaltedPassword]) -> None: ...

    def unset(self, user: str, mechanisms: Sequence[ScramMechanism]) -> None: ...


@dataclasses.dataclass(frozen=True)
class UserStoreOptions:
    """As the options say it: brokers, unless a log directory or a broker's properties are named."""

    connection: ClusterConnection
    data_dir: Path | None
    config: Path | None

    def users(self) -> Users:
        """Raises UsageError."""
        if self.data_dir is not None and self.config is not None:
            raise UsageError("either --data-dir or --config says which broker's")
        if self.data_dir is None and self.config is None:
            return UsersAtBrokers(self.connection)
        from .users_in_store import UsersInStore, own_quorum_directory
        from .users_of_stopped_node import UsersOfStoppedNode

        directory = own_quorum_directory(self.data_dir, self.config)
        return UsersInStore(self.data_dir, self.config) if directory is None else UsersOfStoppedNode(directory)


class UsersAtBrokers:
    """By the requests of KIP-554."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection

    def described(self) -> dict[str, dict[ScramMechanism, int]]:
        with closing(self._connection.admin()) as admin:
            found = admin.describe_user_scram_credentials()
        for user, described in found.items():
            if described["error"]:
                raise ToolError(f"{user}: {described['error']}")
        return {
            user: {ScramMechanism(info["mechanism"]): info["iterations"] for info in described["credential_infos"]}
            for user, described in found.items()
        }

    def set(self, user: str, passwords: Sequence[SaltedPassword]) -> None:
        for each in passwords:  # a quorum takes one mechanism of a user in a request
            row = (user, int(each.mechanism), each.iterations, each.salt, each.salted)
            self._alter(AlterUserScramCredentialsRequest(deletions=[], upsertions=[row]))

    def unset(self, user: str, mechanisms: Sequence[ScramMechanism]) -> None:
        for mechanism in mechanisms:
            self._alter(AlterUserScramCredentialsRequest(deletions=[(user, int(mechanism))], upsertions=[]))

    def _alter(self, request: Any) -> None:
        with closing(self._connection.admin()) as admin:
            answer = _ask_controller(admin, request)
        for result in answer.results:
            if result.error_code:
                raise ToolError(f"{result.user}: {refusal(result.error_code, result.error_message)}")


def _ask_controller(admin: Admin, request: Any) -> Any:
    def errors(answer: Any) -> list[Any]:
        return [kafka.errors.for_code(result.error_code) for result in answer.results]

    return admin.ask_controller(request, errors)


def add(
    place: UserStoreOptions, user: str, mechanisms: Sequence[str] | None, *, password_file: Path | None, iterations: int
) -> None:
    """Set a password. Raises ToolError."""
    chosen = _chosen(mechanisms)
    users = place.users()
    password = _password(user, password_file)
    salts = {mechanism: new_nonce().encode() for mechanism in chosen}
    users.set(
        user,
        [
            SaltedPassword(mechanism, iterations, salt, mechanism.salted_password(password, salt, iterations))
            for mechanism, salt in salts.items()
        ],
    )
    print(f"Set the password of {user} for {_names(chosen)}.")


def list_users(place: UserStoreOptions, *, as_json: bool) -> None:
    """A row for each credential."""
    described = place.users().described()
    rows = [
        (user, mechanism.sasl_name, iterations)
        for user, by_mechanism in sorted(described.items())
        for mechanism, iterations in sorted(by_mechanism.items())
    ]
    print_rows(COLUMNS, rows, as_json=as_json)


def remove(place: UserStoreOptions, user: str, mechanisms: Sequence[str] | None) -> None:
    """Take credentials away. Raises ToolError where there are none."""
    users = place.users()
    described = users.described()
    if user not in described and (close := meant(user, described)):
        raise ToolError(f"there is no user {user}{close}")
    has = described.get(user, {})
    chosen = [mechanism for mechanism in _chosen(mechanisms) if mechanisms or mechanism in has]
    missing = [mechanism for mechanism in chosen if mechanism not in has]
    if missing or not chosen:
        raise ToolError(f"user {user} has no password for {_names(missing or list(ScramMechanism))}")
    users.unset(user, chosen)
    print(f"Removed the password of {user} for {_names(chosen)}.")


def _chosen(mechanisms: Sequence[str] | None) -> list[ScramMechanism]:
    chosen = []
    for name in dict.fromkeys(mechanisms or SCRAM_MECHANISMS):
        if name.upper() not in SCRAM_MECHANISMS:
            raise UsageError(f"--mechanism takes {' or '.join(SCRAM_MECHANISMS)}, not {name}")
        chosen.append(SCRAM_MECHANISMS[name.upper()])
    return chosen


def _names(mechanisms: Sequence[ScramMechanism]) -> str:
    return " and ".join(mechanism.sasl_name for mechanism in mechanisms)


def _password(user: str, file: Path | None) -> str:
    """From a file, standard input, or the person at the terminal, who types it twice. Raises ToolError for an empty one."""
    if file is not None:
        with file.open(encoding="utf-8") as lines:
            password = lines.readline().rstrip("\r\n")
    elif sys.stdin.isatty():
        password = getpass.getpass(f"Password of {user}: ")
        if getpass.getpass("Again: ") != password:
            raise ToolError("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise ToolError("the password is empty")
    return password
