"""The transcripts of docs/command-line.md and the pages on trouble, clusters, teams and Spark, done from top to bottom."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import ottla
from ottla.base.wording import how_to_install
from ottla.cli.help_page import commands
from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import write_scripts

from ..helpers.transcripts import ADDRESS, DOCS, Terminal, files, follow, steps

PAGE = DOCS / "command-line.md"
CLUSTER_PAGE = DOCS / "cluster.md"
RPK_AND_KCAT_PAGE = DOCS / "rpk-and-kcat.md"
TEAMS_PAGE = DOCS / "multi-tenant.md"
CONSOLE_PAGE = DOCS / "console.md"
KRAFT_PAGE = DOCS / "kraft.md"
QUORUM_PAGE = DOCS / "quorum.md"
MIGRATE_PAGE = DOCS / "migrate.md"
TROUBLE_PAGE = DOCS / "troubleshooting.md"
SPARK_PAGES = tuple(DOCS / f"{name}.md" for name in ("spark", "pipelines", "mirror", "lag"))
pytestmark = pytest.mark.timeout(1800)  # a page has a hundred commands, which may run beside all else


@pytest.mark.slow
def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        follow(PAGE, terminal)


@pytest.mark.slow
def test_the_page_on_trouble_shows_what_happens(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        follow(TROUBLE_PAGE, terminal)


@pytest.mark.slow
def test_the_page_on_clusters_shows_what_happens(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tools = write_scripts(tmp_path_factory.mktemp("kafka"))
    with (
        ottla.Cluster(3, properties={"auto.leader.rebalance.enable": "false"}) as cluster,
        Terminal(tmp_path, cluster.bootstrap_servers, cluster=cluster, also=tools) as terminal,
    ):
        follow(CLUSTER_PAGE, terminal)


@pytest.mark.slow
def test_kafka_reassign_partitions_moves_and_cancels(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tools = write_scripts(tmp_path_factory.mktemp("kafka"))
    with (
        ottla.Cluster(3, properties={"auto.leader.rebalance.enable": "false"}) as cluster,
        Terminal(tmp_path, cluster.bootstrap_servers, also=tools) as terminal,
    ):
        follow(Path(__file__).with_name("kafka-reassign-partitions.txt"), terminal)


@pytest.mark.slow
def test_the_page_for_users_of_rpk_and_kcat_shows_what_happens(tmp_path: Path) -> None:
    properties = {"group.initial.rebalance.delay.ms": "0"}
    with ottla.Broker(properties=properties) as broker, Terminal(tmp_path, broker.bootstrap_servers) as terminal:
        follow(RPK_AND_KCAT_PAGE, terminal)


@pytest.mark.slow
def test_the_page_on_teams_shows_what_happens(tmp_path: Path) -> None:
    for name, content in files(TEAMS_PAGE.read_text()).items():
        (tmp_path / name).write_text(content.replace(ADDRESS, "127.0.0.1:0"))
    with Terminal(tmp_path) as terminal:
        follow(TEAMS_PAGE, terminal)


@pytest.mark.slow
@pytest.mark.parametrize("page", SPARK_PAGES, ids=lambda page: page.stem)
def test_the_pages_on_spark_show_what_happens(page: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None:
        toolchains.missing(f"no pyspark ({how_to_install('spark')})")
    toolchains.java()
    toolchains.jars("spark-kafka-4.0.0")
    with (
        ottla.Broker() as broker,
        ottla.Broker() as second,
        Terminal(tmp_path, broker.bootstrap_servers, second.bootstrap_servers) as terminal,
    ):
        follow(page, terminal)


def test_every_command_has_a_transcript() -> None:
    shown = "\n".join(
        step.command
        for page in (PAGE, CLUSTER_PAGE, KRAFT_PAGE, QUORUM_PAGE, MIGRATE_PAGE, TEAMS_PAGE, *SPARK_PAGES)
        for step in steps(page.read_text())
    )
    shown += CONSOLE_PAGE.read_text()  # of `ottla console`, which has no output, and runs in tests/console
    named = [" ".join(("ottla", *declared.words)) for declared in commands() if not declared.is_group]
    assert [name for name in named if not re.search(rf"\b{name}(\s|$)", shown)] == []
