"""docs/recipes.md: what can be run without a CI service is run as it stands there, on a port of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.testing.held_port import HeldPort

from .helpers.pages import run_pytest

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "recipes.md").read_text()
RECIPES = dict(re.findall(r"<!-- recipe: (\w+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))
WHEEL = f"wheels/ottla-{ottla.__version__}-py3-none-any.whl"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With the command ``ottla``, and the folder that GitHub has for what a job leaves."""
    program = tmp_path / "bin" / "ottla"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)}


def test_every_recipe_installs_the_same() -> None:
    for name in ("github", "gitlab", "tox", "nox"):
        assert WHEEL in RECIPES[name], name
        assert RECIPES[name].count("ottla-") == 1, name


@pytest.mark.slow
def test_the_step_of_github_actions_starts_a_broker(tmp_path: Path, environment: dict[str, str]) -> None:
    (step,) = re.findall(r"- name: Start Kafka\n +run: \|\n(.*?)\n      - ", RECIPES["github"], re.DOTALL)
    port = HeldPort()
    address = f"127.0.0.1:{port.number}"
    serve, rest = f"ottla serve --listen {address}", "\nottla topics list --exclude-internal\nkill $!\nwait\n"
    script = re.sub("^ +", "", step, flags=re.MULTILINE).replace("ottla serve", serve) + rest
    try:
        done = subprocess.run(
            ["bash", "-ec", script],
            env=environment | {"OTTLA_BOOTSTRAP_SERVERS": address},
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        port.close()
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "kafka.log").read_text()
    assert re.search(r"^orders\s+3\b", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.slow
def test_a_program_waits_for_the_broker(tmp_path: Path, environment: dict[str, str]) -> None:
    """The script of the Procfile, begun before there is a broker."""
    script = tmp_path / "wait-for-kafka.sh"
    script.write_text(RECIPES["wait"])
    port = HeldPort()
    given = environment | {"OTTLA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port.number}"}
    waiting = subprocess.Popen(["sh", script, "echo", "started"], env=given, stdout=subprocess.PIPE, text=True)
    line = re.findall(r"^kafka: (.*)$", RECIPES["procfile"], re.MULTILINE)[0].replace("9092", str(port.number))
    broker = subprocess.Popen(["sh", "-c", f"exec {line}"], env=given, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        said, _ = waiting.communicate(timeout=120)
    finally:
        waiting.kill()
        broker.send_signal(signal.SIGINT)
        broker.wait(60)
        port.close()
    assert (said, waiting.returncode, broker.returncode) == ("started\n", 0, 0)


def test_the_unit_of_a_user_is_understood(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze")
    (shown,) = re.findall(r"```ini\n(\[Unit\].*?)```", PAGE, re.DOTALL)
    unit = tmp_path / "ottla.service"
    unit.write_text(shown.replace("/opt/ottla/bin/ottla", sys.executable))  # which has to be there
    done = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_an_environment_variable_chooses_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_VERSION", "2.8")
    (tmp_path / "conftest.py").write_text(RECIPES["versions"])
    used = """
def test_version(ottla_broker, ottla_broker_options):
    assert ottla_broker_options == {"version": "2.8"}
"""
    assert run_pytest(used, tmp_path) == {"passed": 1}
