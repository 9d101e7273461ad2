"""A start and a failover of three combined nodes, as ``make bench-quorums`` measures them; here only what must hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.bench.quorums.clusters import DEFAULT, SHORT
from ottla.bench.quorums.rows import Figure
from ottla.bench.quorums.table import BEGIN, END, Table
from ottla.compat_tests.kraft_cluster import KAFKA, OTTLA

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 300


@pytest.mark.slow
def test_nothing_is_lost_when_the_active_controller_is_killed(tmp_path: Path) -> None:
    options = ["--systems", OTTLA, "--turns", "1", "--rows", "start|combined, kill of the active controller, short"]
    command = [sys.executable, "-m", "bench.quorums", *options, "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "- nothing was lost" in done.stdout
    for row in (
        "start: first acknowledged record",
        "next acknowledgement, short times",
        "first CreateTopics, short times",
    ):
        assert row in done.stdout


def test_a_table_has_medians_and_the_worst_of_each_system() -> None:
    table = Table([OTTLA, KAFKA])
    for kind, values in ((OTTLA, (3.0, 1.0, 2.0)), (KAFKA, (4.0,))):
        for value in values:
            table.add(kind, DEFAULT, Figure("kill", value))
    table.add(KAFKA, SHORT, Figure("memory", 1234.5, "MiB"))
    table.audited("Ottla", 10, [])
    lines = table.text().splitlines()
    assert lines[0].startswith("| row | Ottla: median | worst | Apache Kafka")
    assert "| kill | 2.00 s | 3.00 s | 4.00 s | 4.00 s |" in lines
    assert "| memory, short times |  |  | 1,234 MiB | 1,234 MiB |" in lines
    assert lines[-2:] == ["- Ottla: 10 acknowledged, 0 lost", "- nothing was lost"]


def test_a_page_keeps_what_is_round_its_table(tmp_path: Path) -> None:
    table = Table([OTTLA])
    table.add(OTTLA, DEFAULT, Figure("kill", 1.0))
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n")
    table.write(page)
    assert page.read_text() == f"# Title\n\n{BEGIN}\n{table.text()}\n{END}\n\nThe end.\n"
    table.write(tmp_path / "new.md")
    assert (tmp_path / "new.md").read_text() == table.text() + "\n"


def test_a_table_says_what_is_wrong() -> None:
    table = Table([OTTLA])
    table.audited("Ottla", 10, ["t-0 at 7: 3 was acknowledged, None is there"])
    table.failed("Ottla: timed out")
    assert len(table.wrong) == 2
    assert "- WRONG: Ottla: timed out" in table.text()
    assert "nothing was lost" not in table.text()
