"""``ottla produce``, of which ``ottla consume`` shows what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ...helpers.command import Command

pytestmark = pytest.mark.slow
ALL = ("--until-end",)


def test_files_are_read_one_after_the_other(command: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("3\n")
    command("produce", topic, str(tmp_path / "a"), str(tmp_path / "b"))
    assert command("consume", topic, *ALL) == "1\n2\n3\n"


def test_a_file_that_is_not_there(command: Command, topic: str) -> None:
    assert command.refused("produce", topic, "/no/such") == (
        "/no/such: No such file or directory (no record was written)"
    )


def test_a_fixed_key_tombstones_and_what_is_told_of_them(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(2)
    done = command.run("produce", name, "-k", "k", "-p", "1", given="1\n\n")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"2 records written to {name}: in partition 1 at offsets 0 to 1\n"
    given = "".join(json.dumps({"key": "j", "value": "", "partition": n}) + "\n" for n in (0, 1))
    done = command.run("produce", name, "--json", "-k", "k", "-Z", given=given)
    places = "1 record in partition 0 at offset 0, 1 record in partition 1 at offset 2"
    assert done.stderr == f"2 records written to {name}: {places}\n"
    assert command.run("produce", name, "-q", "-k", "k", "-p", "0", given="2\n").stderr == ""
    shown = command("consume", name, "-e", "-Z", "-f", "%p %o %k=%s\n")
    assert sorted(shown.splitlines()) == ["0 0 j=NULL", "0 1 k=2", "1 0 k=1", "1 1 k=", "1 2 j=NULL"]
    assert command("consume", name, "-p", "0", "-e", "-Z", "-K", "->") == "j->NULL\nk->2\n"


def test_a_line_without_the_separator(command: Command, topic: str) -> None:
    why = command.refused("produce", topic, "--key-separator", ":", given="k:v\nno\n")
    assert why == "standard input, line 2: no ':' between key and value (1 record was written)"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"value_base64": "?"}', "value_base64 is not base64"),
        ('{"partition": "0"}', "partition is not a whole number"),
        ('{"headers": [1]}', "headers are"),
    ],
)
def test_json_that_is_no_record(command: Command, topic: str, line: str, why: str) -> None:
    said = command.refused("produce", topic, "--json", given=f'{{"value":"ok"}}\n{line}\n')
    assert said.startswith(f"standard input, line 2: {why}")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(command: Command, topic: str, codec: str) -> None:
    command("produce", topic, "--compression", codec, given="same\n" * 20)
    assert command("consume", topic, *ALL) == "same\n" * 20


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks_and_rate(command: Command, topic: str, acks: str) -> None:
    command("produce", topic, "--acks", acks, "--rate", "1000", given="a\nb\n")
    shown = command("consume", topic, "--num", "2")
    assert shown == "a\nb\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{}", "it has neither key nor value"),
        ('{"value": "x", "headers": {"h": null}}', "it has a header without a value"),
    ],
)
def test_records_that_only_the_client_does_not_take(command: Command, topic: str, line: str, why: str) -> None:
    said = command.refused("produce", topic, "--json", given=line + "\n")
    assert said == f"a record was not written to {topic}: {why}, which kafka-python cannot send (no record was written)"


def test_a_record_that_is_refused(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(1, {"max.message.bytes": "100"})
    why = command.refused("produce", name, given="x" * 200 + "\n")
    assert why.startswith(f"a record was not written to {name}: ")
    assert why.endswith(" (no record was written)")
    assert command("consume", name, *ALL) == ""


def test_what_was_written_before_a_failure_is_told(command: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n")
    why = command.refused("produce", topic, str(tmp_path / "a"), str(tmp_path / "b"))
    assert why == f"{tmp_path / 'b'}: No such file or directory (3 records were written)"
    assert command("consume", topic, *ALL) == "1\n2\n3\n"


def test_a_transaction_is_written_whole_or_not(command: Command, topic: str) -> None:
    command("produce", topic, "--transactional-id", "t1", given="one\ntwo\n")
    why = command.refused("produce", topic, "--transactional-id", "t1", "--json", given='{"value":"x"}\n{\n')
    assert why.endswith(" (the transaction was aborted, and nothing was written)")
    committed = ("consume", topic, *ALL, "--isolation-level", "read_committed")
    assert command(*committed) == "one\ntwo\n"
