"""``ottla consume``, which reads what ``ottla produce`` wrote."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable

import pytest

import ottla

from ...helpers.command import LIMIT_S, Command

pytestmark = pytest.mark.slow

ALL = ("--until-end",)


def test_lines_come_back(command: Command, topic: str) -> None:
    command("produce", topic, given="one\ntwo\r\n\nno end")
    assert command("consume", topic, *ALL) == "one\ntwo\n\nno end\n"


def test_keys_headers_and_formats(command: Command, topic: str) -> None:
    command("produce", topic, "--key-separator", "\\t", "--header", "a=1", "--header", "b=2", given="k\tv\tw\n")
    shown = command("consume", topic, *ALL, "--format", r"%t|%p|%o|%k|%K|%s|%S|%h|%%\x41\n")
    assert shown == f"{topic}|0|0|k|1|v\tw|3|a=1,b=2|%A\n"
    assert command("consume", topic, *ALL, "--format", "%T").isdigit()


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
    assert "is not a regular expression" in command.refused("consume", "^(", code=2)


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
