"""``ottla certs``: its files are those that a broker and stock clients take, and only their owner reads the keys."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import javaproperties

from ottla.cli.tools.access.certs import make
from ottla.security.tls_context import client_context, server_context, shake_hands
from ottla.security.tls_material import read_material
from ottla.security.tls_names import subject_name
from ottla.security.tls_settings import TlsSettings

from ....security.helpers.certificates import parsed


def settings(path: Path) -> dict[str, str]:
    with path.open() as file:
        return dict(javaproperties.load(file))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def owner(folder: Path, name: str) -> str:
    material = read_material(
        TlsSettings.from_properties(settings(folder / f"{name}.properties")), lambda path: Path(path).read_bytes()
    )
    assert material.key is not None
    return subject_name(material.key.chain[0])


def test_broker_and_clients_trust_one_another(tmp_path: Path) -> None:
    make(tmp_path / "certs", hosts=(), clients=("alice",), days=30)
    server = server_context(
        *parsed(settings(tmp_path / "certs" / "broker.properties") | {"ssl.client.auth": "required"})
    )
    shake_hands(server, client_context(*parsed(settings(tmp_path / "certs" / "alice.properties"))))
    assert owner(tmp_path / "certs", "alice") == "CN=alice"


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    make(folder, hosts=(), clients=("alice",), days=30)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_client_is_added_later_and_nothing_else_is_changed(tmp_path: Path) -> None:
    make(tmp_path, hosts=("one.example", "::1"), clients=(), days=30)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    make(tmp_path, hosts=(), clients=("bob",), days=30)
    assert names(tmp_path) == sorted([*before, "bob.pem", "bob.properties"])
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", "certs", *arguments], capture_output=True, text=True, check=False
    )


def test_the_command_says_what_it_has_made(tmp_path: Path) -> None:
    done = run("--directory", str(tmp_path / "c"), "--client", "alice", "--days", "3")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == [str(tmp_path / "c" / name) for name in names(tmp_path / "c")]
    assert "PRIVATE" not in done.stdout + done.stderr
    refused = run("--directory", str(tmp_path / "c"), "--client", "../mallory")
    assert refused.returncode == 2
    assert "cannot be the name of a client" in refused.stderr
