"""What `make test` and `make test-all` are made of: every test has a lane, what a part costs is counted, results are kept."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.compat_tests import programs
from ottla.tools.suite import make_test, make_test_all, parts, results, run_part, speed
from ottla.tools.suite.parts import LANES, PARTS, Part, Selection
from ottla.tools.suite.results import Result, Results
from ottla.tools.suite.run_part import ROOT, Outcome

MEASURE = ROOT / "tools/suite/measure.py"
GREEN = Outcome("quick", is_green=True, passed=3)
RESULT = Result("abc1234", "2026-01-01", is_green=True, why="", wall_s=60, cpu_s=90, factor=1.0)


def python_files(folder: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("test_*.py"))


def has(tests: Selection, file: str) -> bool:
    """Whether pytest would collect a file."""

    def is_in(path: str) -> bool:
        return file == path or file.startswith(f"{path}/")

    ignored = [option.removeprefix("--ignore=") for option in tests.options if option.startswith("--ignore=")]
    return any(map(is_in, tests.paths)) and not any(map(is_in, ignored))


def marks(tests: Selection) -> str:
    return tests.options[tests.options.index("-m") + 1] if "-m" in tests.options else ""


def test_every_file_of_slow_tests_is_in_one_lane() -> None:
    slow = [lane for lane in LANES if lane.tests is not None and marks(lane.tests) == parts.SLOW]
    for file in python_files("tests"):
        found = [lane.name for lane in slow if lane.tests is not None and has(lane.tests, file)]
        expected = parts.lane_of_slow(file)
        assert found == (["mixed", "mixed-kafka"] if expected == "mixed" else [expected]), file


def test_the_kinds_of_tests_that_are_not_in_those_lanes_have_one_each() -> None:
    """Slow ones that compute, and quick ones."""
    whole = [marks(lane.tests) for lane in LANES if lane.tests is not None and lane.tests.paths == ("tests",)]
    assert sorted(whole) == sorted([parts.COMPUTES, "not slow", parts.SLOW])


@pytest.mark.parametrize("brokers", [(), ("--brokers", "3")], ids=["one broker", "three brokers"])
def test_every_client_is_in_one_lane(brokers: tuple[str, ...]) -> None:
    named = []
    for lane in LANES:
        options = lane.tests.options if lane.tests is not None else ()
        if lane.venv == parts.VENV and ("--brokers" in options) == bool(brokers):
            named += [options[at + 1] for at, word in enumerate(options) if word == "--client"]
    assert sorted(named) == sorted(programs.names())


def test_files_that_no_lane_of_clients_has_are_in_lanes_of_their_own() -> None:
    of_clients = [lane.tests for lane in LANES if lane.tests is not None and "--client" in lane.tests.options]
    of_files = [lane.tests for lane in LANES if lane.tests is not None and "--client" not in lane.tests.options]
    for file in python_files("compat_tests"):
        assert any(has(tests, file) for tests in of_files) != any(has(tests, file) for tests in of_clients), file


@pytest.mark.parametrize("part", [*PARTS, *LANES], ids=lambda part: part.name)
def test_what_a_part_names_exists(part: Part) -> None:
    tests = part.tests or Selection(())
    ignored = [option.removeprefix("--ignore=") for option in tests.options if option.startswith("--ignore=")]
    assert [path for path in (*tests.paths, *ignored) if not (ROOT / path).exists()] == []
    steps = (ROOT / "tools/setup.sh").read_text()
    assert [step for step in part.needs if f"tools/setup.sh {step}" not in steps and f", {step}" not in steps] == []


@pytest.mark.parametrize(
    ("implementation", "release", "flags", "said"),
    [
        ("CPython", "3.13.1", "--prefix=/usr -O3", "CPython 3.13.1, GCC 12.2.0, May 1, neither PGO nor LTO on record"),
        (
            "CPython",
            "3.13.1",
            "--enable-optimizations --with-lto",
            "CPython 3.13.1, GCC 12.2.0, May 1, built with PGO and LTO",
        ),
        ("CPython", "3.13.1", "-fprofile-use", "CPython 3.13.1, GCC 12.2.0, May 1, built with PGO"),
        ("PyPy", "7.3.19", "", "PyPy 7.3.19 (Python 3.13.1), GCC 12.2.0, May 1"),
    ],
)
def test_what_is_said_of_a_python(tmp_path: Path, implementation: str, release: str, flags: str, said: str) -> None:
    build = {"implementation": implementation, "release": release, "flags": flags}
    build |= {"python": "3.13.1", "compiler": "GCC 12.2.0", "day": "May 1"}
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(build)}\nEND\n")
    python.chmod(0o755)
    assert speed.build_of_python(str(python)) == said


def test_a_page_says_which_python_it_was() -> None:
    assert re.fullmatch(r"\w+ [\d.]+.*, \d+\.\d\d s for 10,000,000 additions in a loop", speed.described())


def measured(tmp_path: Path, program: str, grace_s: float = 60) -> Any:
    report = tmp_path / "report"
    start = f"import sys; sys.path.insert(0, {str(MEASURE.parent)!r}); import measure"
    start += f"; measure.GRACE_S = {grace_s}; measure.main()"
    command = [sys.executable, "-c", start, str(report), sys.executable, "-c", program]
    subprocess.run(command, check=True, timeout=120)
    return json.loads(report.read_text())


DAEMON = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {!r}], start_new_session=True)"
BURN = "import time\nwhile time.process_time() < 0.4: pass"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_the_time_of_a_daemon_is_counted(tmp_path: Path) -> None:
    found = measured(tmp_path, DAEMON.format(BURN))
    assert (found["status"], found["ended"]) == (0, 0)
    assert found["cpu_s"] >= 0.4


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_a_daemon_that_stays_is_ended(tmp_path: Path) -> None:
    stays = "import time; open({!r}, 'w').close(); time.sleep(600)".format(str(tmp_path / "started"))
    waits = f"\nimport pathlib, time\nwhile not pathlib.Path({str(tmp_path / 'started')!r}).exists(): time.sleep(0.01)"
    assert measured(tmp_path, DAEMON.format(stays) + waits, grace_s=0.1)["ended"] == 1


def test_the_status_of_a_command_is_told(tmp_path: Path) -> None:
    assert measured(tmp_path, "raise SystemExit(7)")["status"] == 7
    assert measured(tmp_path, "import os; os.kill(os.getpid(), 9)")["status"] == -9


TESTS = """
import pytest
def test_passes(): pass
@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("name", ["a@b"])
def test_fails(name): assert False
def test_is_left_out(): pytest.skip("no such program")
@pytest.fixture
def broken(): raise ValueError
def test_has_an_error(broken): pass
"""


def a_part(tmp_path: Path, text: str, *, workers: int = 1) -> Part:
    file = tmp_path / "test_of_a_part.py"
    file.write_text(text)
    return Part("trial", "a trial", Selection((str(file),)), workers=workers)


def run(part: Part, folder: Path, **options: Any) -> Outcome:
    async def main() -> Outcome:
        return await run_part.run(part, folder, **options)

    return trio.run(main)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_outcome_of_a_part(tmp_path: Path, workers: int) -> None:
    part = a_part(tmp_path, TESTS, workers=workers)
    outcome = run(part, tmp_path)
    assert not outcome.is_green
    assert (outcome.passed, outcome.why) == (1, "2 failed")
    assert outcome.left_out == {"no such program": 1}
    assert outcome.cpu_s > 0
    names = [name.rpartition("::")[2] for name in outcome.failed]
    assert names == ["test_fails[a@b]", "test_has_an_error"]
    assert "assert False" in (tmp_path / "trial.log").read_text()
    again = run(part, tmp_path, chosen=outcome.failed)
    assert (again.passed, again.failed) == (0, outcome.failed)


def test_a_part_that_cannot_be_collected(tmp_path: Path) -> None:
    outcome = run(a_part(tmp_path, "import there_is_no_such_module"), tmp_path)
    assert not outcome.is_green
    assert "no_such_module" in (tmp_path / "trial.log").read_text()


def test_what_is_left_out_fails_in_ci_only() -> None:
    skipped = dataclasses.replace(GREEN, left_out={"no java on the PATH": 2})
    missing = Outcome("spark", is_left_out=True, why="this needs what is not here: Maven (mvn)")
    broken = Outcome("spark", why="2 failed")
    for outcome, here, in_ci in (
        (GREEN, True, True),
        (skipped, True, False),
        (missing, True, False),
        (broken, False, False),
    ):
        assert make_test.is_good(outcome, is_ci=False) == here
        assert make_test.is_good(outcome, is_ci=True) == in_ci
    shown = make_test.summary([skipped, missing])
    assert "left out: 2 of quick: no java on the PATH" in shown
    assert "left out: spark: this needs what is not here: Maven (mvn)" in shown
    assert make_test.closing_line([skipped, missing]) == "3 passed, 0 failed, 2 skipped"


@pytest.mark.parametrize("kind", ["make test", "make test-all"])
def test_a_program_that_is_missing_is_told_of_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for program in ("dirname", "sed"):  # all that tools/setup.sh needs to find out that there is no Go
        (tmp_path / program).symlink_to(shutil.which(program) or "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    part = Part("trial", "a trial", Selection(()), needs=("go",))
    if kind == "make test":
        monkeypatch.setattr(make_test, "PARTS", (part,))
        chosen, outcomes = make_test.set_up_parts()
        assert not chosen
        print(make_test.summary(outcomes))
    else:
        monkeypatch.setattr(make_test_all, "KEPT", tmp_path / "results.json")
        monkeypatch.setattr(make_test_all, "LANES", (part,))
        monkeypatch.setenv("CI", "")
        assert make_test_all.main([]) == 0
    said = capsys.readouterr()
    assert (said.out + said.err).count("this needs what is not here: Go 1.") == 1
    assert "left out: trial: this needs what is not here: Go 1." in said.out


def test_results_are_kept_and_a_run_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "results.json"
    known = results.load(file)
    known.begin(["quick", "seeds", "pages"])
    known.add("quick", RESULT)
    red = dataclasses.replace(RESULT, commit="def5678", is_green=False, why="1 failed")
    known.add("seeds", red)
    results.save(known, file)
    again = results.load(file)
    assert again == known
    assert again.pending == ["seeds", "pages"]
    again.add("quick", red)
    assert again.green["quick"] == RESULT
    shown = make_test_all.lanes_table(again)
    assert "abc1234 (2026-01-01)  FAILED at def5678: 1 failed" in shown
    assert shown.endswith("2 pending: seeds, pages")


def test_a_lane_that_takes_too_long_or_failed_at_first_is_named() -> None:
    slow = dataclasses.replace(RESULT, wall_s=60 * 9.5)
    assert make_test_all.remark(slow) == "over 9 minutes"
    assert make_test_all.remark(dataclasses.replace(slow, factor=1.2)) == ""
    assert make_test_all.remark(dataclasses.replace(RESULT, failed_at_first=("a::b",))) == "failed at first: a::b"


FAILS_ONCE = """
from pathlib import Path
def test_fails_once():
    mark = Path(__file__).with_name("mark")
    was_there = mark.exists()
    mark.touch()
    assert was_there
def test_passes(): pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results of lanes go there."""
    monkeypatch.setattr(make_test_all, "FOLDER", tmp_path)
    monkeypatch.setattr(make_test_all, "ROOT", tmp_path)
    monkeypatch.setattr(make_test_all, "KEPT", tmp_path / "results.json")
    monkeypatch.setenv("CI", "")
    return tmp_path


def test_a_lane_has_a_second_turn(folder: Path) -> None:
    known = Results()
    assert make_test_all.run_lane(a_part(folder, FAILS_ONCE), known, [])
    kept = results.load(folder / "results.json").green["trial"]
    assert [name.rpartition("::")[2] for name in kept.failed_at_first] == ["test_fails_once"]


@pytest.mark.parametrize(
    "text",
    [
        "def test_fails(): assert False",
        "import pytest\ndef test_is_left_out(): pytest.skip('no such program')",
        "import pytest\n@pytest.mark.parametrize('n', range(4))\n" + FAILS_ONCE.replace("once()", "once(n)"),
    ],
    ids=["fails twice", "left out", "too many fail"],
)
def test_a_lane_that_is_not_green(folder: Path, text: str) -> None:
    known = Results()
    assert not make_test_all.run_lane(a_part(folder, text.replace('"mark")', '"mark" + str(n))')), known, [])
    assert not known.green
    assert known.last["trial"].why


def test_a_simulation_has_no_second_turn(folder: Path) -> None:
    simulation = folder / "simulation"
    simulation.mkdir()
    assert not make_test_all.run_lane(a_part(simulation, FAILS_ONCE), Results(), [])


def test_a_run_goes_on_with_the_lanes_that_were_not_green(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {}
    for name, text in (("good", "def test_passes(): pass"), ("bad", "def test_fails(): assert False")):
        (folder / name).mkdir()
        made[name] = dataclasses.replace(a_part(folder / name, text), name=name)
    monkeypatch.setattr(make_test_all, "LANES", tuple(made.values()))
    assert make_test_all.main([]) == 1
    (folder / "bad" / "test_of_a_part.py").write_text("def test_is_mended(): pass")
    capsys.readouterr()
    assert make_test_all.main(["--resume"]) == 0
    shown = capsys.readouterr().out
    assert "bad: green: 1 passed" in shown and "good: green" not in shown
    assert "0 pending: none" in shown


def test_a_part_of_a_lane_is_not_kept(folder: Path) -> None:
    known = Results()
    assert make_test_all.run_lane(a_part(folder, FAILS_ONCE), known, ["-k", "passes"])
    assert known == Results()
