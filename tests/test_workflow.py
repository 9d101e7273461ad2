"""The workflow of GitHub Actions is `make test` and `make check`, with each Python of pyproject.toml, and nothing of its own.

Its shell steps are run here: those of both targets as make's dry run, and, slow, `make check` in a copy of the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
(FILE,) = (ROOT / ".github" / "workflows").iterdir()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
JOBS: dict[str, Any] = yaml.safe_load(FILE.read_text())["jobs"]
JOB = JOBS["test"]
MATRIX = JOB["strategy"]["matrix"]
TARGETS = {row["os"].split("-")[0]: row["target"] for row in MATRIX["include"]}


def runs(target: str) -> list[str]:
    """The shell steps of a row of the matrix."""
    steps = [step["run"] for step in JOB["steps"] if "run" in step]
    return [step.replace("${{ matrix.target }}", target) for step in steps]


def test_its_one_step_is_what_ci_runs() -> None:
    """On macOS, which lacks what some slow tests need, it is the quick part."""
    assert set(JOBS) == {"test"}
    assert TARGETS == {"ubuntu": "test", "macos": "check"}
    assert runs("test") == ["make test"]
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make --no-print-directory test"


def test_nothing_is_left_out_silently() -> None:
    """CI=true makes what is missing a failure; nothing may fail and be green, and one failure hides no other."""
    assert JOB["env"] == {"CI": "true"}
    assert JOB["strategy"]["fail-fast"] is False
    assert all("continue-on-error" not in each for each in (JOB, *JOB["steps"]))


def test_the_other_steps_bring_the_checkout_and_the_toolchains() -> None:
    used = [step["uses"].partition("@")[0] for step in JOB["steps"] if "uses" in step]
    assert used == [f"actions/{name}" for name in ("checkout", "setup-python", "setup-java", "upload-artifact")]
    python, java = (
        next(step["with"] for step in JOB["steps"] if name in step.get("uses", "")) for name in ("python", "java")
    )
    assert python == {"python-version": "${{ matrix.python }}"}
    assert java["java-version"] == "17"
    assert JOB["steps"][-1]["if"].startswith("failure()"), "logs are kept of what failed"


def test_the_pythons_are_those_of_the_classifiers() -> None:
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert MATRIX["python"] == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"
    setup = (ROOT / "tools" / "setup.sh").read_text()
    assert all(f" python{version} " in setup for version in versions), "tools/setup.sh finds each of them"


@pytest.mark.parametrize("target", TARGETS.values())
def test_each_shell_step_is_a_target_of_make(target: str) -> None:
    for step in runs(target):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step],
            cwd=ROOT,
            env=os.environ | {"MAKEFLAGS": "n"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert f"tools/setup.sh {target}" in done.stdout
        assert "-m ottla.tools.suite test" in done.stdout or "-m pytest tests" in done.stdout


@pytest.mark.slow
def test_the_step_of_macos_in_a_fresh_checkout(tmp_path: Path) -> None:
    """With all that it installs and checks, and of the quick tests those of this file."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for path in listed.stdout.splitlines():
        if (ROOT / path).exists():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    environment |= {"CI": "true", "MAKEFLAGS": " -- ARGS=-ktest_workflow"}
    for step in runs(TARGETS["macos"]):
        command = ["bash", "-e", "-o", "pipefail", "-c", step]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        assert re.search(r"\d+ passed", done.stdout)
