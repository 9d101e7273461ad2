"""What docs/quorum.md shows is done, on three nodes and a fourth, each a process; its services of systemd are these.

What happens between the page's commands, machines that die for good, happens where a section begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ottla.compat_tests.session import eventually

from ..helpers.quorum_nodes import QuorumNode, start_all
from ..helpers.transcripts import DOCS, LIMIT_S, Terminal, files, pattern, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_PAGE = DOCS / "quorum.md"
_FIGURES = re.compile(r"(?<=\n   \d) ( *\d+){4}$| (leader|follower) ", re.MULTILINE)
"""Who leads, and what it has measured."""


class _Machines(Terminal):
    """A terminal on which ``systemctl`` means the nodes."""

    def __init__(self, folder: Path, nodes: dict[int, QuorumNode]) -> None:
        self.nodes = nodes
        names = {f"ottla-{each}:9092": node.address for each, node in nodes.items()}
        names |= {f"ottla-{each}:9093": node.controller_address for each, node in nodes.items()}
        super().__init__(folder, nodes[1].address, names=names)

    def _run_here(self, command: str) -> str:
        done = re.fullmatch(r"sudo systemctl (start|stop|restart)((?: ottla@\d)+)", command)
        if done is None:
            return self._run(command)
        named = [self.nodes[int(number)] for number in re.findall(r"\d", done[2])]
        for node in named:
            if done[1] != "start":
                node.stop()
        if done[1] != "stop":
            start_all(named)
        return ""

    def brokers(self) -> set[int]:
        """Those that are alive, as broker 1 is told."""
        told = json.loads(self.run("ottla cluster describe --json -b ottla-1:9092"))
        return {each["broker"] for each in told["brokers"] if each["host"] is not None}

    def here(self, text: str) -> str:
        """A text of the page, with the addresses that there are here."""
        for name, address in self._names.items():
            text = text.replace(name, address)
        return text


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[_Machines]:
    """Three nodes of a cluster that began with a release whose features can be raised; a topic with two records."""
    page = _PAGE.read_text()
    with ExitStack() as stack:
        nodes = {each: stack.enter_context(closing(QuorumNode(tmp_path, each))) for each in (1, 2, 3, 4)}
        machines = stack.enter_context(_Machines(tmp_path, nodes))
        (example,) = files(page).values()
        for each in nodes:
            content = example.replace("node.id=4", f"node.id={each}").replace("data-4", f"data-{each}")
            content = re.sub(
                r"(listeners=.*)", lambda found, each=each: found[1].replace("ottla-4", f"ottla-{each}"), content
            )
            (tmp_path / f"node-{each}.properties").write_text(machines.here(content))
        first = [nodes[each] for each in (1, 2, 3)]
        for node in first:
            node.format("-I", ",".join(each.voter for each in first), "--release-version", "4.1")
        start_all(first)
        machines.run("ottla topics create orders -p 1 -r 3 -b ottla-1:9092")
        machines.run("printf 'first\\nsecond\\n' | ottla produce orders -b ottla-1:9092")
        yield machines


def test_the_page_on_quorums_shows_what_happens(machines: _Machines) -> None:
    begins = {
        "Replacing a dead machine": machines.nodes[3].destroy,
        "Restoring a quorum that lost its majority": lambda: [machines.nodes[each].destroy() for each in (3, 2)],
    }
    _, *sections = re.split(r"^## ", _PAGE.read_text(), flags=re.MULTILINE)
    titles = [section.partition("\n")[0] for section in sections]
    assert set(begins) <= set(titles)
    for title, section in zip(titles, sections, strict=True):
        begins.get(title, lambda: None)()
        for step in steps(section):
            if step.command.startswith("ottla cluster health"):
                eventually(lambda: machines.brokers() == {1}, LIMIT_S)
            shown = machines.run(step.command)
            shown = "\n".join(line.rstrip() for line in shown.splitlines() if line.strip())
            expected = _FIGURES.sub(" … ", step.expected) if "cluster quorum" in step.command else step.expected
            assert pattern(expected).fullmatch(shown), f"{title}: $ {step.command}\n{shown}"
    described = machines.run("ottla cluster quorum -b ottla-2:9092")
    assert re.findall(r"^ *(\d) +(?:leader|follower)", described, re.MULTILINE) == ["1", "2", "3"]
    assert machines.run("ottla consume orders -b ottla-3:9092 -e").split() == ["first", "second"]
