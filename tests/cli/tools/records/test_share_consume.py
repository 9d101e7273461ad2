"""``ottla consume --share``: a member of a share group that prints, acknowledges, and releases what it has not printed."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess

import pytest

import ottla

from ...helpers.command import LIMIT_S, Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

_numbers = itertools.count()


@pytest.fixture
def group(command: Command) -> str:
    """A share group that begins with the first record."""
    name = f"workers-{next(_numbers)}"
    command("configs", "set", "--group", name, "share.auto.offset.reset=earliest")
    return name


def test_what_was_printed_is_acknowledged_and_nothing_else(command: Command, topic: str, group: str) -> None:
    command("produce", topic, given="".join(f"{n}\n" for n in range(1, 7)))
    read = ("consume", topic, "--share", group)
    assert command(*read, "--num", "2") == "1\n2\n"
    (described,) = command.json("groups", "describe", group)
    assert (described["state"], described["total_lag"]) == ("Empty", 4)
    assert command(*read, "-n", "1", "--format", "%p %o %s %c\\n") == "0 2 3 1\n"
    assert command(*read, "-n", "3") == "4\n5\n6\n"
    assert command(*read, "--timeout-ms", "2500") == ""


def test_several_partitions_and_topics(command: Command, topic: str, group: str, broker: ottla.Broker) -> None:
    other = f"{topic}-other"
    broker.create_topic(other, 3)
    lines = [json.dumps({"key": "k", "value": f"{n}", "partition": n % 3}) + "\n" for n in range(30)]
    command("produce", other, "--json", given="".join(lines))
    command("produce", topic, given="one\n")
    shown = command("consume", topic, other, "--share", group, "-n", "31", "--json").splitlines()
    records = [json.loads(line) for line in shown]
    assert {record["delivery_count"] for record in records} == {1}
    expected = {(other, n % 3, n // 3, f"{n}") for n in range(30)} | {(topic, 0, 0, "one")}
    assert {(each["topic"], each["partition"], each["offset"], each["value"]) for each in records} == expected


def printed(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_on_a_signal_and_leaves_the_group(
    command: Command, topic: str, group: str, number: signal.Signals
) -> None:
    command("produce", topic, given="1\n2\n")
    with command.start("consume", topic, "--share", group) as process:
        assert printed(process, 2) == [b"1\n", b"2\n"]
        process.send_signal(number)
        left, errors = process.communicate(timeout=LIMIT_S)
    assert (left, errors, process.returncode) == (b"", b"", 0)
    (described,) = command.json("groups", "describe", group)
    assert (described["state"], described["total_lag"]) == ("Empty", 0)


def test_records_that_the_output_does_not_take_are_released(command: Command, topic: str, group: str) -> None:
    command("produce", topic, given="1\n")
    with command.start("consume", topic, "--share", group) as process:
        assert printed(process, 1) == [b"1\n"]
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(LIMIT_S) == 0
        assert process.stderr.read() == b""
    command("produce", topic, given="2\n")
    # A pipe without a reader would end it before the record is there.
    with open("/dev/full", "wb") as output:
        process = command.start("consume", topic, "--share", group, stdout=output)
        assert process.wait(LIMIT_S) == 1
    assert process.stderr is not None and b"No space left on device" in process.stderr.read()
    read = ("consume", topic, "--share", group, "--num", "1", "--timeout-ms", "20000")
    assert command(*read, "-f", "%s %c\\n") == "2 2\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--group", "g"),
        ("--partitions", "0"),
        ("--offset", "start"),
        ("--until-end",),
        ("--isolation-level", "read_committed"),
        ("--topic", "^a"),
        ("--format", "%z"),
    ],
)
def test_options_that_make_no_sense_for_a_share_group(command: Command, topic: str, options: tuple[str, ...]) -> None:
    command.refused("consume", topic, "--share", "s", *options, code=2)


def test_a_delivery_count_is_of_share_groups(command: Command, topic: str) -> None:
    assert "--share" in command.refused("consume", topic, "-f", "%c", code=2)


def test_groups_and_topics_that_do_not_do(command: Command, topic: str) -> None:
    command("produce", topic, given="1\n")
    command("consume", topic, "--group", f"{topic}-readers", "-n", "1")
    said = command.refused("consume", topic, "--share", f"{topic}-readers")
    assert "is a group of another protocol" in said
    assert "there is no topic absent" in command.refused("consume", "absent", "--share", f"{topic}-absent")


def test_a_cluster_without_share_groups_says_so(command: Command) -> None:
    with ottla.Broker(version="3.9") as older:
        older.create_topic("jobs")
        said = Command(older.bootstrap_servers).refused("consume", "jobs", "--share", "workers")
    assert "serves no share groups" in said
