"""What all subcommands have in common: help, errors, exit codes, connection settings, terminals."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ottla
from ottla.cli.app import app
from ottla.cli.help_page import commands

from .helpers.command import LIMIT_S, Command
from .helpers.terminal import on_terminal, typed_into

HEAVY = {"kafka", "trio", "rich", "pyspark", "ottla.broker", "ottla.handlers", "ottla.log", "confluent_kafka"}


def modules_after(*arguments: str) -> set[str]:
    """The modules that are loaded when the command with these arguments ends."""
    program = (
        "import sys\n"
        f"sys.argv = ['ottla', *{list(arguments)!r}]\n"
        "from ottla.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(['MODULES', *sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S)
    assert "Usage:" in done.stdout
    return set(done.stdout.partition("MODULES\n")[2].split())


@pytest.mark.parametrize("arguments", [("--help",), ("topics", "--help"), ("topics", "list", "--help")])
def test_help_loads_nothing_that_it_does_not_need(arguments: tuple[str, ...]) -> None:
    assert not HEAVY & modules_after(*arguments)


def test_every_subcommand_is_in_the_help(command: Command) -> None:
    shown = command("--help")
    for name in {declared.words[0] for declared in commands()}:
        assert re.search(rf"^  {name} ", shown, re.MULTILINE), name
    assert "the extra spark" in shown


def test_nobody_listens(tmp_path: Path) -> None:
    why = Command("127.0.0.1:1").refused("topics", "list")
    assert why.startswith("no broker answers at 127.0.0.1:1 (connection refused); ")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("localhost:x", "'localhost:x' is not HOST:PORT"),
        ("127.0.0.1:99999", "the port of '127.0.0.1:99999' is out of range: 65535 is the highest"),
        ("127.0.0.1:0", "the port of '127.0.0.1:0' is out of range: 1 is the lowest"),
    ],
)
def test_an_address_that_is_none(command: Command, address: str, why: str) -> None:
    assert command.refused("topics", "list", "--bootstrap-server", address, code=2) == f"--bootstrap-server: {why}"


def test_options_that_are_unknown_or_missing(command: Command) -> None:
    for arguments in (("topics", "list", "--nope"), ("topics", "delete"), ("nope",)):
        done = command.run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Usage:" in done.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("topic", "list"), "'topics'"),
        (("group",), "'groups'"),
        (("consum", "t"), "'consume'"),
        (("topics", "lst"), "'list'"),
        (("topics", "trim-prefix", "t"), "'trim'"),
        (("groups", "seek"), "'reset-offsets'"),
        (("groups", "lag", "g"), "'describe'"),
        (("cluster", "info"), "'describe'"),
        (("topics", "consume", "t"), "'ottla consume'"),
    ],
)
def test_a_command_that_is_not_there_is_told_what_was_meant(words: tuple[str, ...], meant: str) -> None:
    typed = next(word for word in words if word not in ("topics", "groups", "cluster"))
    done = CliRunner().invoke(app, words, prog_name="ottla")
    assert done.exit_code == 2
    assert f"No such command '{typed}'. Did you mean {meant}?" in done.output


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("-C", "-t", "orders"), "No such option: -C. Did you mean 'ottla consume'?"),
        (("-b", "127.0.0.1", "-L"), "No such option: -L. Did you mean 'ottla topics list'?"),
        (
            ("topics", "create", "--topic", "orders"),
            "No such option: --topic. Topics stand without it: 'ottla topics create TOPIC…'.",
        ),
        (
            ("topics", "describe", "-t", "orders"),
            "No such option: -t. Topics stand without it: 'ottla topics describe [TOPIC…]'.",
        ),
        (("consume",), "Invalid value for 'TOPIC…': name a topic, there or with --topic"),
        (("produce", "-p", "0"), "Invalid value for 'TOPIC': name a topic, there or with --topic"),
    ],
)
def test_an_option_of_other_tools_is_told_what_was_meant(words: tuple[str, ...], meant: str) -> None:
    done = CliRunner().invoke(app, words, prog_name="ottla")
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, f"Error: {meant}")


@pytest.mark.parametrize(
    "words",
    [
        ("-b", "{}", "topics", "list"),
        ("-b{}", "topics", "list"),
        ("--bootstrap-server={}", "-X", "client.id=x", "topics", "list"),
        ("topics", "--bootstrap-server", "{}", "list"),
        ("-b", "127.0.0.1:1", "topics", "-b", "127.0.0.1:2", "list", "-b", "{}"),
    ],
)
def test_what_all_tools_take_may_stand_before_the_command(command: Command, topic: str, words: tuple[str, ...]) -> None:
    nowhere = Command("127.0.0.1:1")
    address = command.environment["OTTLA_BOOTSTRAP_SERVERS"]
    assert topic in nowhere(*(word.format(address) for word in words))


def test_debug_before_the_command() -> None:
    done = Command("127.0.0.1:1").run("--debug", "topics", "list")
    assert (done.returncode, "Traceback (most recent call last)" in done.stderr) == (1, True)


def test_options_before_a_command_that_has_them_not_or_before_none() -> None:
    done = CliRunner().invoke(app, ["-b", "127.0.0.1", "serve"], prog_name="ottla")
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, "Error: No such option: -b")
    for words in (["-b", "127.0.0.1", "topics"], ["-b", "127.0.0.1", "topics", "--help"]):
        assert "Usage: ottla topics [OPTIONS] COMMAND" in CliRunner().invoke(app, words, prog_name="ottla").output


def test_the_version(command: Command) -> None:
    assert command("version") == command("--version") == f"ottla {ottla.__version__}\n"


def test_topics_are_named_as_with_kcat(command: Command, new_topic: Callable[[], str], tmp_path: Path) -> None:
    topic, other = new_topic(), new_topic()
    (tmp_path / "file").write_text("of a file\n")
    command("produce", "-t", topic, given="one\n")
    command("produce", "-q", str(tmp_path / "file"), "--topic", topic)
    command("produce", other, str(tmp_path / "file"))
    assert command("consume", "-t", topic, "-e") == "one\nof a file\n"
    read = command("consume", other, "-t", topic, "-e", "-f", "%t\n")
    assert sorted(read.splitlines()) == sorted([topic, topic, other])


def test_the_address_and_the_settings_come_from_the_environment(command: Command, topic: str, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("linger.millis=1\n")
    named = Command(command.environment["OTTLA_BOOTSTRAP_SERVERS"])
    named.environment["OTTLA_COMMAND_CONFIG"] = str(settings)
    assert (
        named.refused("topics", "list", code=2) == "no client setting is named linger.millis; did you mean linger.ms?"
    )
    settings.write_text("client.id=named\n")
    assert topic in named("topics", "list", "-X", "request.timeout.ms=30000")


def test_client_settings(command: Command, topic: str, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("client.id = from-file\nlinger.ms=1\nisolation.level=read_committed\n")
    command("produce", topic, "--command-config", str(settings), given="x\n")
    settings.write_text("linger.millis=1\n")
    why = command.refused("topics", "list", "--command-config", str(settings), code=2)
    assert why == "no client setting is named linger.millis; did you mean linger.ms?"
    command("topics", "list", "--command-property", "client.id=x")
    assert "/no/such" in command.refused("topics", "list", "--command-config", "/no/such")


def test_debug_shows_the_traceback(command: Command) -> None:
    done = command.run("topics", "describe", "none", "--debug")
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("ottla: there is no topic none")


def test_a_terminal_gets_a_table(command: Command, topic: str) -> None:
    shown = on_terminal(command, "topics", "list")
    assert "\x1b[1mTOPIC" in shown
    assert re.search(rf"{topic} +1 +1 +0 +0 +0 B", shown)


def test_nothing_is_drawn_over_what_is_typed(command: Command, topic: str) -> None:
    shown = typed_into(command, "produce", topic, typed=b"one\ntwo\n\x04")
    assert shown.splitlines() == [
        "Each line is a record; end with Ctrl-D.",
        "one",
        "two",
        f"2 records written to {topic}: in partition 0 at offsets 0 to 1",
    ]
    assert command("consume", topic, "--until-end") == "one\ntwo\n"


def test_colours_can_be_had_off(command: Command, topic: str) -> None:
    assert "\x1b[" not in on_terminal(command, "topics", "list", NO_COLOR="1")
    assert "\x1b[" not in on_terminal(command, "topics", "list", TERM="dumb")
