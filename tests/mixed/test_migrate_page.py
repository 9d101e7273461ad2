"""What docs/migrate.md shows is done, on three brokers of Ottla; test_migration.py has those of Apache Kafka."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.zookeeper import ZooKeeperProcess

from ..cli.helpers.transcripts import DOCS, Terminal, files, follow
from .helpers.migrating import OF_BOTH, OTTLA, MigratingCluster, MigratingNode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_PAGE = DOCS / "migrate.md"


class _Machines(Terminal):
    """A terminal on which ``systemctl`` means the nodes, in their old or their new life."""

    def __init__(self, folder: Path, cluster: MigratingCluster) -> None:
        self._nodes = cluster
        names = {}
        for each, node in cluster.nodes.items():
            names |= {
                f"ottla-{each}:9092": node.address,
                f"ottla-{each}:9093": node.controller_address,
                f"data-{each}": node.log_dirs,
            }
        super().__init__(folder, cluster.nodes[1].address, names=names)

    def here(self, text: str) -> str:
        """A text of the page, with the addresses and directories that there are here."""
        for name, what in self._names.items():
            text = text.replace(name, what)
        return text

    def _run_here(self, command: str) -> str:
        if command.startswith("sudo systemctl stop kafka@1"):
            self._nodes.stop()
        elif command.startswith("sudo systemctl start ottla@1"):
            for node in self._nodes.nodes.values():
                assert isinstance(node, MigratingNode)
                node.is_migrated = True
            self._nodes.start()
        else:
            return self._run(command)
        return ""


@pytest.fixture
def machines(tmp_path: Path, zookeeper_server: ZooKeeperProcess) -> Iterator[_Machines]:
    """Three brokers on the ZooKeeper, and a topic with two records."""
    cluster = MigratingCluster(tmp_path / "nodes", zookeeper_server, f"/{tmp_path.name}", OTTLA)
    with contextlib.closing(cluster), _Machines(tmp_path, cluster) as machines:
        (example,) = files(_PAGE.read_text()).values()
        also = "".join(f"{name}={value}\n" for name, value in OF_BOTH.items())
        for each, node in cluster.nodes.items():
            assert isinstance(node, MigratingNode)
            own = re.sub(r"(?m)^node.id=1$", f"node.id={each}", example).replace("data-1", f"data-{each}")
            own = re.sub(r"(listeners=.*)", lambda found, each=each: found[1].replace("ottla-1", f"ottla-{each}"), own)
            node.file.write_text(machines.here(own) + also)
            (tmp_path / f"node-{each}.properties").write_text(node.file.read_text())
            (tmp_path / f"server-{each}.properties").write_text(node.old_file.read_text())
        cluster.start_old()
        machines.run("ottla topics create orders -p 1 -r 3 -b ottla-1:9092")
        machines.run("printf 'first\\nsecond\\n' | ottla produce orders -b ottla-1:9092")
        yield machines


def test_the_page_on_migration_shows_what_happens(machines: _Machines) -> None:
    follow(_PAGE, machines)
