"""What docs/listeners.md shows is done, on other ports: a broker with that file, and then the commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ottla
from ottla.base.addresses import split_host_port
from ottla.broker.config_file import read_properties
from ottla.testing.held_port import HeldPort

from ..helpers.command import Command

pytestmark = pytest.mark.slow

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "listeners.md"


@contextmanager
def _on_ports_of_the_tests() -> Iterator[str]:
    """The page, with ports that are kept in place of those it names."""
    held = {port: HeldPort() for port in ("9091", "9092", "9093")}
    try:
        yield re.sub("|".join(held), lambda found: str(held[found[0]].number), _PAGE.read_text())
    finally:
        for port in held.values():
            port.close()


def test_what_the_page_shows(tmp_path: Path) -> None:
    with _on_ports_of_the_tests() as text:
        (shown,), (commands,) = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("properties", "sh"))
        file = tmp_path / "server.properties"
        file.write_text(shown)
        properties = read_properties(file)
        del properties["log.dirs"]
        outside = properties["listeners"].partition("OUTSIDE://")[2]
        with ottla.Broker(data_dir=tmp_path / "data", properties=properties) as broker:
            assert split_host_port(broker.bootstrap_servers) == split_host_port(
                properties["listeners"].partition("INSIDE://")[2].partition(",")[0]
            )
            command = Command(outside)
            for line in commands.replace("\\\n", "").splitlines():
                name, *arguments = shlex.split(line)
                assert name == "ottla"
                command(*arguments)
            assert [name for name, *_ in command.rows("topics", "list")] == ["t"]
