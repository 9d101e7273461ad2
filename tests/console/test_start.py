"""A broker without a console loads nothing of it, and one that cannot have one says in a line why."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.base.wording import how_to_install

LIMIT_S = 120

pytestmark = pytest.mark.slow

LOADED = """
import sys, threading, signal, os
sys.argv = ["ottla", "serve", "--listen", "127.0.0.1:0", "--data-dir", sys.argv[1]]
from ottla.cli import main

class Ready:
    def write(self, text):
        if "is ready on" in text:
            os.kill(os.getpid(), signal.SIGTERM)
    def flush(self):
        pass

sys.stdout = Ready()
try:
    main()
except SystemExit as ended:
    assert ended.code == 0, ended.code
print("\\n".join(sys.modules), file=sys.stderr)
"""


def test_without_a_console_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path)], capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    loaded = done.stderr.splitlines()
    assert "ottla.broker.server" in loaded
    unwanted = ("ottla.console", "ottla.view", "ottla.broker.http", "jinja2", "starlette", "h11")
    assert not [name for name in loaded if name.startswith(unwanted)]


@pytest.mark.parametrize(
    ("arguments", "missing", "why"),
    [
        ([], "jinja2", f"the console needs {how_to_install('console')}"),
        (
            ["--override", "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"],
            "",
            "there are access rules, and no listener has users with passwords",
        ),
        (
            ["--override", "console.avro.schemas=nothing.avsc"],
            "",
            "for decoding: cannot read nothing.avsc: No such file",
        ),
        (
            ["--override", "console.schema.registry.url=http://127.0.0.1:8081"],
            "fastavro",
            f"reading Avro needs {how_to_install('console-formats')}",
        ),
        (
            ["--override", "console.connect.urls=ftp://x"],
            "",
            "console.connect.urls: ftp://x is not an address of a Connect worker",
        ),
        (["--console", "8080"], "", "'8080' is not HOST:PORT"),
    ],
)
def test_a_console_that_cannot_be_is_one_line(arguments: list[str], missing: str, why: str, tmp_path: Path) -> None:
    hidden = f"sys.modules[{missing!r}] = None; " if missing else ""
    script = f"import sys; {hidden}sys.argv = ['ottla', 'serve', *sys.argv[1:]]; from ottla.cli import main; main()"
    given = ["--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2, done
    (line,) = done.stderr.splitlines()
    assert line.startswith("ottla: ")
    assert why in line
    assert not (tmp_path / "data").exists()


def test_a_console_of_a_cluster_at_an_address_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "ottla", "console", "-b", address, "--listen", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    assert done.stderr == f"ottla: --listen {address}: Address already in use\n"
