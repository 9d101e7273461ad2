"""Dockerfile and the compose files, as far as they can be executed without a container engine.

Run: the steps of the build stage in a copy of what ``COPY . .`` copies, in an environment without a compiler; CMD with ENV, or
with what a compose file says in their place; HEALTHCHECK; SIGTERM. Paths of the image are folders of the test, its addresses are
on loopback, and each name of a service is an address there.

Not run but read: FROM, the RUN of the second stage, which makes a user, USER, VOLUME, and what compose makes of networks, secrets
and volumes.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dockerfile_parse")
pytest.importorskip("yaml")

import yaml
from dockerfile_parse import DockerfileParser

from ottla.compat_tests.session import eventually
from ottla.testing.held_port import HeldPort

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 300.0
STEPS = [
    (step["instruction"], step["value"])
    for step in DockerfileParser(str(ROOT / "Dockerfile"), cache_content=True).structure
    if step["instruction"] != "COMMENT"
]
SECOND = max(number for number, (instruction, _) in enumerate(STEPS) if instruction == "FROM")
COMPOSE = {name: yaml.safe_load((ROOT / name).read_text()) for name in ("compose.yaml", "compose.cluster.yaml")}
SERVICES = [(name, service) for name, file in COMPOSE.items() for service in file["services"]]


def values(instruction: str, *, of_build: bool = False) -> list[str]:
    """Those of a stage."""
    stage = STEPS[:SECOND] if of_build else STEPS[SECOND:]
    return [value for name, value in stage if name == instruction]


def health_check() -> list[str]:
    (value,) = values("HEALTHCHECK")
    command: list[str] = json.loads(value.partition(" CMD ")[2])
    return command


DATA = values("VOLUME")[0]
BUILT = values("COPY")[0].split()[-1]


def test_the_image_is_of_a_python_that_is_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    images = [value.split()[0] for name, value in STEPS if name == "FROM"]
    assert len(set(images)) == 1, "what is built by one Python is run by it"
    assert re.fullmatch(r"python:(3\.\d+)-slim", images[0])
    assert f"Programming Language :: Python :: {images[0][len('python:') : -len('-slim')]}" in classifiers


def test_the_broker_is_not_root_and_owns_its_data() -> None:
    (user,) = values("USER")
    (made,) = values("RUN")
    assert user not in {"root", "0"}
    assert f"useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin {user} " in made
    assert made.endswith(f"install -d -o {user} -g {user} {DATA}")
    assert STEPS.index(("USER", user)) > STEPS.index(("RUN", made))


def test_the_ports_that_it_names_are_those_that_it_listens_on() -> None:
    (command,) = values("CMD")
    listened = set(re.findall(r"0\.0\.0\.0:(\d+)", command))
    assert listened | {"8080"} == set(values("EXPOSE")[0].split()), "8080 is the console's, which is not on by itself"


@pytest.mark.parametrize(("file", "service"), SERVICES)
def test_a_service_is_this_image_with_a_volume_of_its_own(file: str, service: str) -> None:
    wanted = COMPOSE[file]["services"][service]
    assert (wanted["build"], wanted["image"]) == (".", "ottla")
    (volume,) = wanted["volumes"]
    name, _, mounted = volume.partition(":")
    assert (name, mounted) == (service, DATA)
    assert name in COMPOSE[file]["volumes"]
    for port in wanted.get("ports", []):
        published, outside, inside = port.split(":")
        assert published == "127.0.0.1", "not for everyone: what listens in the network has neither TLS nor passwords"
        assert outside == inside and inside in values("EXPOSE")[0].split()


def is_ignored(path: str) -> bool:
    """By .dockerignore: a pattern is of a path from the root, behind ``**/`` of any part of one, and stands for all below it."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    parts = path.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(
        fnmatch.fnmatch(each, pattern.removeprefix("**/"))
        for pattern in patterns
        for each in (parts if pattern.startswith("**/") else above)
    )


class Host:
    """Folders in the place of the image's, and addresses on loopback in the place of a network's."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._ports: dict[tuple[str, str], int] = {}

    def port(self, service: str, port: str) -> int:
        """The held one for a port of a service; the next one is held with it."""
        while (service, port) not in self._ports:
            with contextlib.ExitStack() as held:
                own = HeldPort()
                held.callback(own.close)
                with contextlib.suppress(OSError):
                    held.callback(HeldPort(own.number + 1).close)
                    self._ports[service, port] = own.number
                    self._stack.push(held.pop_all())
        return self._ports[service, port]

    def path(self, text: str) -> str:
        """With the folders of this machine."""
        for place in (BUILT, "/src", "/run/secrets"):
            text = re.sub(rf"(?<![\w/]){place}\b", str(self.folder) + place, text)
        return text

    def words(self, service: str, text: str) -> str:
        """With this machine's folders, addresses and ports in the words of a service."""
        text = self.path(text).replace(DATA, f"{self.folder}/{service}{DATA}")
        text = re.sub(r"0\.0\.0\.0|\blocalhost\b", "127.0.0.1", text)
        nodes = re.search(r"--cluster (\S+)", text)
        if nodes:
            listed = ",".join(f"127.0.0.1:{self.port(name, '9092')}" for name in nodes[1].split(","))
            text = text.replace(nodes[1], listed)
        text = re.sub(rf"\b{service}\b(?=:)", "127.0.0.1", text)
        return re.sub(r":(\d{4,5})\b", lambda found: self._mapped(service, found[1]), text)

    def _mapped(self, service: str, port: str) -> str:
        is_here = int(port) in self._ports.values()
        return f":{port}" if is_here else f":{self.port(service, port)}"


class Container:
    """A service that runs: a process of the program that was built."""

    def __init__(self, host: Host, service: str, command: list[str], variables: Mapping[str, str]) -> None:
        self._host, self._service = host, service
        (host.folder / service / DATA.lstrip("/")).mkdir(parents=True, exist_ok=True)
        own = {name: host.words(service, value) for name, value in variables.items()}
        path = f"{host.folder}{BUILT}/bin:{os.environ['PATH']}"
        self._environment = {"HOME": str(host.folder), **own, "PATH": path}
        self._log = host.folder / f"{service}.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [host.words(service, word) for word in command],
                env=self._environment,
                cwd=host.folder / service / DATA.lstrip("/"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_healthy(self) -> bool:
        """What HEALTHCHECK finds."""
        assert self.process.poll() is None, self._log.read_text()
        command = [self._host.words(self._service, word) for word in health_check()]
        return subprocess.run(command, env=self._environment, capture_output=True).returncode == 0

    def ottla(self, *words: str, given: str = "", port: str = "9092") -> str:
        """What ``ottla`` prints in it, to a listener of this broker."""
        address = f"127.0.0.1:{self._host.port(self._service, port)}"
        done = subprocess.run(
            ["ottla", *words, "-b", address], env=self._environment, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr + self._log.read_text()
        return done.stdout

    def stop(self) -> int:
        """As an engine does; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S)


Start = Callable[..., Container]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the build stage has been run, in the place of its root."""
    folder = tmp_path_factory.mktemp("image")
    host = Host(folder, contextlib.ExitStack())
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    (place,) = values("WORKDIR", of_build=True)
    assert values("COPY", of_build=True) == [". ."]
    for path in filter(lambda path: (ROOT / path).exists() and not is_ignored(path), listed.stdout.splitlines()):
        (folder / place[1:] / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / place[1:] / path)
    (folder / "opt").mkdir()
    nothing = {"CC": "false", "CXX": "false", "CARGO": "false"}  # in the place of compilers, which the slim image lacks
    python = str(Path(sys.executable).parent)
    environment = {**os.environ, **nothing, "PATH": f"{python}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    for step in values("RUN", of_build=True):
        done = subprocess.run(
            ["sh", "-c", host.path(step)], cwd=folder / place[1:], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def start(built: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a service of a compose file, or the image as it is; all end with the test."""
    with contextlib.ExitStack() as stack:
        host = Host(tmp_path, stack)
        (tmp_path / BUILT[1:]).parent.mkdir()
        (tmp_path / BUILT[1:]).symlink_to(built / BUILT[1:])
        secret = tmp_path / "run" / "secrets" / "cluster"
        secret.parent.mkdir(parents=True)
        secret.write_text("known to all three of them")
        image = dict(value.split("=", 1) for value in values("ENV"))

        def begin(service: str, wanted: Mapping[str, Any]) -> Container:
            (own,) = values("CMD")
            command = shlex.split(wanted["command"]) if "command" in wanted else json.loads(own)
            container = Container(host, service, one_word_of_serve(command), image | wanted.get("environment", {}))
            stack.callback(container.stop)
            return container

        yield begin


def one_word_of_serve(command: list[str]) -> list[str]:
    """The options of ``ottla serve`` as a shell takes them, so that the list of nodes stands beside its option."""
    return command if command[0] == "sh" else ["sh", "-c", f"exec {shlex.join(command)}"]


@pytest.mark.slow
def test_a_container_is_healthy_stops_and_keeps_its_data(start: Start) -> None:
    broker = start("kafka", {})
    eventually(broker.is_healthy, LIMIT_S)
    broker.ottla("topics", "create", "orders", "-p", "2")
    broker.ottla("produce", "orders", given="one\n")
    assert broker.stop() == 0
    again = start("kafka", COMPOSE["compose.yaml"]["services"]["kafka"])
    eventually(again.is_healthy, LIMIT_S)
    again.ottla("produce", "orders", given="two\n", port="19092")
    assert sorted(again.ottla("consume", "orders", "-e").split()) == ["one", "two"]
    assert again.stop() == 0


@pytest.mark.slow
def test_three_services_form_a_cluster(start: Start) -> None:
    """And one that comes back is part of it again."""
    wanted = COMPOSE["compose.cluster.yaml"]["services"]
    nodes = {name: start(name, service) for name, service in wanted.items()}
    for node in nodes.values():
        eventually(node.is_healthy, LIMIT_S)
    first, second, third = nodes.values()
    first.ottla("topics", "create", "orders", "-r", "3")
    first.ottla("produce", "orders", given="one\n")
    assert third.stop() == 0
    second.ottla("produce", "orders", given="two\n")
    third = start("kafka-3", wanted["kafka-3"])
    eventually(third.is_healthy, LIMIT_S)
    third.ottla("cluster", "wait")
    assert sorted(third.ottla("consume", "orders", "-e").split()) == ["one", "two"]
