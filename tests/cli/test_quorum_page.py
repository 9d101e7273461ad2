"""What docs/quorum.md shows is done, on three nodes and a fourth, each a process; its services of systemd are these.

What happens between the page's commands, machines that die for good, happens where a section begins.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ottla.compat_tests.server_process import ServerProcess
from ottla.testing.held_port import HeldPort

from .transcripts import DOCS, Terminal, files, pattern, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_PAGE = DOCS / "quorum.md"
_CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
_VOTERS = ",".join(
    f"{each}@ottla-{each}:9093:{letter}Yt1jCRIqbKuPBvnxfZ46w" for each, letter in ((1, "n"), (2, "a"), (3, "b"))
)
_FIGURES = re.compile(r"(?<=\n   \d) ( *\d+){4}$| (leader|follower) ", re.MULTILINE)
"""Who leads, and what it has measured."""
_READY = re.compile(r"^Ottla \S+ is ready on ", re.MULTILINE)


class _Node(ServerProcess):
    """Node ``node_id``: its broker's port is the server's own, ``controller`` has that of its controller."""

    def __init__(self, folder: Path, node_id: int) -> None:
        super().__init__(folder, f"node-{node_id}.log")
        self.node_id = node_id
        self.controller = HeldPort()
        self._starts = 0

    def command(self) -> list[str]:
        return [
            "sh",
            "-c",
            f'cd "{self.folder}" && exec "{sys.executable}" -m ottla serve --config node-{self.node_id}.properties',
        ]

    def launch(self) -> None:
        self._starts += 1
        super().launch()

    def is_ready(self) -> bool:
        return len(_READY.findall(self.log())) == self._starts

    def destroy(self) -> None:
        """The machine goes with its disk."""
        self.kill()
        shutil.rmtree(self.folder / f"data-{self.node_id}")

    def close(self) -> None:
        super().close()
        self.controller.close()


class _Machines(Terminal):
    """A terminal on which ``systemctl`` means the nodes."""

    def __init__(self, folder: Path, nodes: dict[int, _Node]) -> None:
        self.nodes = nodes
        names = {f"ottla-{each}:9092": node.address for each, node in nodes.items()}
        names |= {f"ottla-{each}:9093": f"127.0.0.1:{node.controller.number}" for each, node in nodes.items()}
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
            self.start(named)
        return ""

    def start(self, nodes: list[_Node]) -> None:
        """Side by side."""
        for node in nodes:
            node.launch()
        for node in nodes:
            node.wait_ready()

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
        nodes = {each: stack.enter_context(closing(_Node(tmp_path, each))) for each in (1, 2, 3, 4)}
        machines = stack.enter_context(_Machines(tmp_path, nodes))
        (example,) = files(page).values()
        for each in nodes:
            content = example.replace("node.id=4", f"node.id={each}").replace("data-4", f"data-{each}")
            content = re.sub(
                r"(listeners=.*)", lambda found, each=each: found[1].replace("ottla-4", f"ottla-{each}"), content
            )
            (tmp_path / f"node-{each}.properties").write_text(machines.here(content))
        for each in (1, 2, 3):
            voters = machines.here(_VOTERS)
            command = [
                "format",
                "-c",
                f"node-{each}.properties",
                "-t",
                _CLUSTER_ID,
                "-I",
                voters,
                "--release-version",
                "4.1",
            ]
            subprocess.run([sys.executable, "-m", "ottla", *command], check=True, capture_output=True, cwd=tmp_path)
        machines.start([nodes[each] for each in (1, 2, 3)])
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
            shown = machines.run(step.command)
            shown = "\n".join(line.rstrip() for line in shown.splitlines() if line.strip())
            expected = _FIGURES.sub(" … ", step.expected) if "cluster quorum" in step.command else step.expected
            assert pattern(expected).fullmatch(shown), f"{title}: $ {step.command}\n{shown}"
    described = machines.run("ottla cluster quorum -b ottla-2:9092")
    assert re.findall(r"^ *(\d) +(?:leader|follower)", described, re.MULTILINE) == ["1", "2", "3"]
    assert machines.run("ottla consume orders -b ottla-3:9092 -e").split() == ["first", "second"]
