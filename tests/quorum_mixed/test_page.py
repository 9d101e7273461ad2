"""What docs/kraft.md shows is done: a broker of Ottla joins three nodes of Apache Kafka as they are after an installation."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import write_scripts
from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.testing.held_port import HeldPort

from ..cli.helpers.transcripts import DOCS, Terminal, files, follow, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_PAGE = DOCS / "kraft.md"


def test_the_page_shows_what_happens(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = _PAGE.read_text()
    assert CLUSTER_ID in text and any("ottla serve" in step.command for step in steps(text))
    tools = write_scripts(tmp_path_factory.mktemp("kafka"))
    cluster = QuorumCluster(tmp_path_factory.mktemp("cluster"), kafkas=3, ottlas=0, turned_off=(), format_by="kafka")
    with contextlib.closing(cluster), contextlib.closing(HeldPort()) as port:
        cluster.start()
        names = {"ottla-11:9092": f"127.0.0.1:{port.number}"}
        for number in cluster.ids:
            node = cluster.kafka(number)
            names[f"kafka-{number}:9092"] = node.address
            names[f"kafka-{number}:9093"] = f"127.0.0.1:{node.controller_port}"
        for name, content in files(text).items():
            for said, here in names.items():
                content = content.replace(said, here)
            (tmp_path / name).write_text(content)
        with Terminal(tmp_path, cluster.nodes[0].address, also=tools, names=names) as terminal:
            terminal.run("ottla topics create orders -p 2 -r 3")
            follow(_PAGE, terminal)
