"""``ottla produce`` and ``ottla consume``, one reading what the other wrote."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import ottla

from .conftest import LIMIT_S, Command

pytestmark = pytest.mark.slow

ALL = ("--until-end",)


def test_lines_come_back(command: Command, topic: str) -> None:
    command("produce", topic, given="one\ntwo\r\n\nno end")
    assert command("consume", topic, *ALL) == "one\ntwo\n\nno end\n"


def test_files_are_read_one_after_the_other(command: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("3\n")
    command("produce", topic, str(tmp_path / "a"), str(tmp_path / "b"))
    assert command("consume", topic, *ALL) == "1\n2\n3\n"


def test_a_file_that_is_not_there(command: Command, topic: str) -> None:
    assert command.refused("produce", topic, "/no/such") == (
        "/no/such: No such file or directory (no record was written)"
    )


def test_keys_headers_and_formats(command: Command, topic: str) -> None:
    command("produce", topic, "--key-separator", "\\t", "--header", "a=1", "--header", "b=2", given="k\tv\tw\n")
    shown = command("consume", topic, *ALL, "--format", r"%t|%p|%o|%k|%K|%s|%S|%h|%%\x41\n")
    assert shown == f"{topic}|0|0|k|1|v\tw|3|a=1,b=2|%A\n"
    assert command("consume", topic, *ALL, "--format", "%T").isdigit()


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


def test_several_topics_and_patterns(command: Command, broker: ottla.Broker) -> None:
    for number, name in enumerate(("many.a", "many.b", "few.c")):
        broker.create_topic(name)
        command("produce", name, given=f"{number}\n")
    read = ("consume", "-e", "-f", "%t=%s\n")
    assert sorted(command(*read, "many.a", "few.c").split()) == ["few.c=2", "many.a=0"]
    assert sorted(command(*read, "^many\\..*", "few.c").split()) == ["few.c=2", "many.a=0", "many.b=1"]
    shown = command("consume", "^man", "few.c", "-g", "patterns", "-n", "3", "-f", "%t=%s\n")
    assert sorted(shown.split()) == ["few.c=2", "many.a=0", "many.b=1"]
    assert "no topic matches ^none" in command.refused("consume", "^none")
    assert "is no regular expression" in command.refused("consume", "^(", code=2)


def test_a_line_without_the_separator(command: Command, topic: str) -> None:
    why = command.refused("produce", topic, "--key-separator", ":", given="k:v\nno\n")
    assert why == "standard input, line 2: no ':' between key and value (1 record was written)"


def test_json_goes_there_and_back(command: Command, new_topic: Callable[..., str]) -> None:
    source, target = new_topic(2), new_topic(2)
    lines = [
        {"key": "k", "value": "v", "partition": 1, "timestamp": 1000, "headers": {"h": "1"}},
        {"key": "gone", "value": None, "partition": 1, "timestamp": 2000},
        {"value": {"a": [1, "ü"]}, "partition": 0},
        {"value_base64": "/w==", "partition": 0, "headers": [{"key": "h", "value": ""}, {"key": "h", "value": "2"}]},
    ]
    command("produce", source, "--json", given="".join(json.dumps(line) + "\n" for line in lines))
    first = command("consume", source, *ALL, "--json")
    command("produce", target, "--json", given=first)
    second = command("consume", target, *ALL, "--json")
    by_place = {}
    for text in first.splitlines():
        record = json.loads(text)
        assert record.pop("topic") == source
        by_place[record.pop("partition"), record.pop("offset")] = record
    assert by_place[1, 0] == {
        "timestamp": 1000,
        "timestamp_type": "CreateTime",
        "key": "k",
        "value": "v",
        "headers": [{"key": "h", "value": "1"}],
    }
    assert by_place[1, 1]["value"] is None
    assert by_place[0, 0]["value"] == '{"a":[1,"ü"]}'
    assert by_place[0, 1]["value_base64"] == "/w=="
    assert by_place[0, 1]["headers"] == [{"key": "h", "value": ""}, {"key": "h", "value": "2"}]
    assert sorted(second.splitlines()) == sorted(first.replace(f'"{source}"', f'"{target}"').splitlines())


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


def test_where_to_begin(command: Command, topic: str) -> None:
    lines = [{"value": str(n), "timestamp": n * 1000} for n in range(1, 6)]
    command("produce", topic, "--json", given="".join(json.dumps(line) + "\n" for line in lines))
    read = ("consume", topic, "--until-end")
    assert command(*read) == "1\n2\n3\n4\n5\n"
    assert command(*read, "-o", "end") == ""
    assert command(*read, "--offset", "3") == "4\n5\n"
    assert command(*read, "-o", "1:3") == "2\n3\n"
    assert command("consume", topic, "-o", ":2") == "1\n2\n"
    assert command(*read, "--offset", "-1") == "5\n"
    assert command(*read, "--offset", "-100") == "1\n2\n3\n4\n5\n"
    assert command(*read, "-o", "@1970-01-01T00:00:03.500") == "4\n5\n"
    assert command(*read, "-o", "@2030-01-01T00:00:00+02:00") == ""
    assert command("consume", topic, "-o", "@1970-01-01T00:00:02:1970-01-01T00:00:04") == "2\n3\n"
    assert command("consume", topic, "-o", "s@2000", "-o", "e@4000") == "2\n3\n"
    assert command(*read, "--offset", "1", "--num", "2") == "2\n3\n"


def test_single_partitions(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(3)
    for partition in "012":
        command("produce", name, "--partition", partition, given=f"{partition}\n")
    assert command("consume", name, *ALL, "-p", "1") == "1\n"
    shown = command("consume", name, *ALL, "--partitions", "0,2")
    assert sorted(shown.splitlines()) == ["0", "2"]
    assert "has no partition 7" in command.refused("consume", name, "-p", "7")


def test_a_group_goes_on_where_it_stopped_printing(command: Command, topic: str) -> None:
    command("produce", topic, given="1\n2\n3\n")
    read = ("consume", topic, "--group", "goes-on")
    assert command(*read, "--num", "2") == "1\n2\n"
    assert command(*read, "--until-end") == "3\n"
    assert command(*read, "--until-end") == ""


def test_the_end_of_a_transaction_is_no_lag(command: Command, topic: str) -> None:
    command("produce", topic, "--transactional-id", "no-lag", given="1\n")
    command("consume", topic, "--group", "no-lag", "--until-end")
    assert command.json("groups", "describe", "no-lag")[0]["total_lag"] == 0


@pytest.mark.timeout(120)
def test_two_members_share_a_topic_and_print_each_record_once(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(2)
    for partition in "01":
        command("produce", name, "--partition", partition, given=f"old {partition}\n")
    read = ("consume", name, "--group", f"share-{name}")
    shown: list[bytes] = []
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(command.start(*read))
        stack.callback(first.kill)
        assert first.stdout is not None
        shown.append(first.stdout.readline())  # it is a member now
        second = stack.enter_context(command.start(*read))
        stack.callback(second.kill)
        group = ("groups", "describe", read[3])
        with_one = 0
        for _ in range(LIMIT_S):  # each question takes a while
            if with_one == 2:
                break
            with_one = sum(member["partitions"] == 1 for member in command.json(*group)[0]["members"])
        assert with_one == 2
        for partition in "01":
            command("produce", name, "--partition", partition, given=f"new {partition}\n")
        for process in (first, second):
            assert process.stdout is not None
            while not (line := process.stdout.readline()).startswith(b"new"):
                shown.append(line)
            shown.append(line)
            process.terminate()
            left, errors = process.communicate(timeout=LIMIT_S)
            assert (left, errors, process.returncode) == (b"", b"", 0)
    assert sorted(shown) == [b"new 0\n", b"new 1\n", b"old 0\n", b"old 1\n"]
    assert command.json(*group)[0]["total_lag"] == 0


def test_it_ends_when_nothing_comes(command: Command, topic: str) -> None:
    assert command("consume", topic, "--timeout-ms", "100") == ""


def test_a_topic_that_is_not_there_is_not_created(command: Command) -> None:
    assert "there is no topic absent" in command.refused("consume", "absent")
    assert "absent" not in [row[0] for row in command.rows("topics", "list")]


@pytest.mark.parametrize(
    "options",
    [
        ("--offset", "1", "--offset", "2"),
        ("--group", "g", "--offset", "1"),
        ("--group", "g", "--offset", ":end"),
        ("--offset", "stored"),
        ("--key-separator", ":", "--json"),
        ("--json", "--format", "%s"),
        ("--offset", "soon"),
        ("--offset", "@soon"),
        ("--format", "%z"),
        ("--format", "%k{rot13}"),
    ],
)
def test_options_that_make_no_sense(command: Command, topic: str, options: tuple[str, ...]) -> None:
    command.refused("consume", topic, *options, code=2)


def test_a_pipe_that_is_closed_ends_it(command: Command, topic: str) -> None:
    command("produce", topic, given="first\n")
    process = command.start("consume", topic)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"first\n"
    process.stdout.close()
    # Nothing more is produced: it has to notice without writing.
    assert process.wait(LIMIT_S) == 0
    assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_on_a_signal_and_commits_what_was_printed(command: Command, topic: str, number: signal.Signals) -> None:
    group = f"signal-{number}"
    command("produce", topic, given="1\n2\n")
    process = command.start("consume", topic, "--group", group)
    assert process.stdout is not None and process.stderr is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"1\n", b"2\n"]
    process.send_signal(number)
    assert process.wait(LIMIT_S) == 0
    assert process.stderr.read() == b""
    (described,) = command.json("groups", "describe", group)
    assert [p["current_offset"] for p in described["partitions"]] == [2]
