"""``ottla migrate``: migrates one node of a cluster in ZooKeeper mode to KRaft, or back.

Exit codes: 0 done, or shown, 1 it cannot be done, or what would be lost is not accepted, 2 a file cannot be used.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import trio

from ..base.config import Config
from ..base.seams import SystemClock
from ..base.settings import SettingError
from ..broker.config_file import load_config, read_properties
from ..broker.directories.migration import Migration
from ..broker.directories.migration_plan import Difference, MigratingNode, MigrationError
from ..controller.zookeeper.store.cluster_store import ClusterStore, StoreError
from ..controller.zookeeper.store.zookeeper import ZooKeeper
from ..controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
from ..log.disk import OsDisk


@dataclass(frozen=True)
class MigrateOptions:
    """The command line."""

    before: Path
    after: Path
    release: str | None
    is_dry: bool
    is_undo: bool
    may_leave_behind: bool


def run(options: MigrateOptions) -> int:
    """Show it, do it or take it back; the exit code."""
    try:
        trio.run(_run, options)
    except (SettingError, MigrationError, StoreError) as error:
        print(f"ottla: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"ottla: {error.filename or options.after}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


def _config(path: Path) -> Config:
    """Raises SettingError, OSError."""
    return load_config(read_properties(path))


@contextlib.asynccontextmanager
async def _session(node: MigratingNode) -> AsyncIterator[ClusterStore]:
    """A session at the ZooKeeper, where nothing is made. Raises StoreError, SettingError."""
    client = ZooKeeper(node.old.settings(ZooKeeperSettings))
    try:
        session = await client.connect(makes_folder=False)
        yield session
        await session.close()
    finally:
        client.close()


async def _run(options: MigrateOptions) -> None:
    node = MigratingNode(_config(options.before), _config(options.after))
    node.check()
    async with _session(node) as store:
        with Migration(OsDisk(), store, node, random.SystemRandom(), SystemClock()) as migration:
            if options.is_undo:
                print("\n".join(await migration.undo()))
                print(f"Start the node with {options.before}.")
            elif options.is_dry:
                print("\n".join(_shown(await migration.examine(options.release))))
            else:
                done = await migration.run(options.release, may_leave_behind=options.may_leave_behind)
                print("\n".join(_shown(done)))
                print(f"Start the node with {options.after}.")


def _shown(difference: Difference) -> Iterator[str]:
    for title, lines in (
        ("stays", difference.stays),
        ("changes", difference.changes),
        ("left behind", difference.left_behind),
    ):
        yield f"{title}:" if lines else f"{title}: nothing"
        yield from (f"  {line}" for line in lines)
