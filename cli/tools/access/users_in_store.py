"""SCRAM credentials in the ZooKeeper of a cluster.

So the first user is added to a cluster whose listeners all ask for a password, as ``kafka-configs --zookeeper`` does it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import trio

from ....base.config import Config
from ....base.seams import SystemClock
from ....broker.config_file import read_properties
from ....broker.settings import BrokerSettings
from ....controller.quorum.settings import QuorumSettings
from ....controller.zookeeper.config_store import ConfigStore
from ....controller.zookeeper.leaving.old_state import has_state
from ....controller.zookeeper.store.cluster_store import ClusterStore, StoreError
from ....controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
from ....log.checkpoints import read_meta_properties
from ....log.disk import OsDisk
from ....log.log_directories import metadata_log_dir_of
from ....replication.metadata_cache import MetadataCache
from ....security.entities import USERS, Entity
from ....security.scram import (
    SaltedPassword,
    ScramMechanism,
    UnusableCredential,
    credential_from_salted_password,
)
from ..running import ToolError

T = TypeVar("T")


def own_quorum_directory(data_dir: Path | None, config: Path | None) -> str | None:
    """The directory of the metadata log of a node of KRaft; None for a broker whose users are in a store.

    Raises OSError, SettingError, ToolError.
    """
    properties = _config(data_dir, config)
    if properties.settings(ZooKeeperSettings).connect:
        return None
    settings = properties.settings(BrokerSettings)
    directories = settings.log_dirs or (settings.log_dir,)
    directory = metadata_log_dir_of(properties.settings(QuorumSettings).metadata_log_dir, directories)
    if has_state(OsDisk(), directories[0]):
        why = "has the metadata of an Ottla before KRaft: start the broker once, which takes them over"
        raise ToolError(f"the log directory {directories[0]} {why}")
    return directory


def _config(data_dir: Path | None, config: Path | None) -> Config:
    return Config({"log.dirs": str(data_dir)} if config is None else read_properties(config))


class UsersInStore:
    """``users.Users`` by the nodes under ``/config/users``."""

    def __init__(self, data_dir: Path | None, config: Path | None) -> None:
        """Raises OSError, SettingError."""
        self._config = _config(data_dir, config)

    def described(self) -> dict[str, dict[ScramMechanism, int]]:
        return self._run(_described)

    def set(self, user: str, passwords: Sequence[SaltedPassword]) -> None:
        credentials = {
            each.mechanism.sasl_name: credential_from_salted_password(
                each.mechanism, each.salt, each.salted, each.iterations
            ).render()
            for each in passwords
        }

        async def change(configs: ConfigStore) -> None:
            await configs.change(Entity(USERS, user), lambda before: {**before, **credentials})

        self._run(change)

    def unset(self, user: str, mechanisms: Sequence[ScramMechanism]) -> None:
        names = {mechanism.sasl_name for mechanism in mechanisms}

        async def change(configs: ConfigStore) -> None:
            await configs.change(
                Entity(USERS, user),
                lambda before: {name: value for name, value in before.items() if name not in names},
            )

        self._run(change)

    def _run(self, task: Callable[[ConfigStore], Awaitable[T]]) -> T:
        async def run() -> T:
            async with self._session() as session:
                configs = ConfigStore(session, SystemClock(), MetadataCache())
                await configs.create_parent_nodes()
                await configs.start()
                return await task(configs)

        try:
            return trio.run(run)
        except StoreError as error:
            raise ToolError(str(error)) from error

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[ClusterStore]:
        from ....controller.zookeeper.store.zookeeper import ZooKeeper

        client = ZooKeeper(self._config.settings(ZooKeeperSettings))
        try:
            session = await client.connect()
            yield session
            await session.close()
        finally:
            client.close()


def check_home(disk: OsDisk, data_dir: str) -> None:
    """Raises ToolError where the cluster's state is not in the folder, but in a ZooKeeper."""
    meta = read_meta_properties(disk, data_dir)
    if meta is not None and meta.zookeeper is not None:
        why = f"the broker in {data_dir} is of a cluster whose state is in the ZooKeeper {meta.zookeeper}"
        raise ToolError(f"{why}: name its server.properties by --config")


async def _described(configs: ConfigStore) -> dict[str, dict[ScramMechanism, int]]:
    found: dict[str, dict[ScramMechanism, int]] = {}
    for user, credentials in configs.metadata.image.scram.items():
        for mechanism, credential in credentials.items():
            if isinstance(credential, UnusableCredential):
                raise ToolError(f"the {mechanism.sasl_name} credential of {user} is damaged: {credential.reason}")
            found.setdefault(user, {})[mechanism] = credential.iterations
    return found
