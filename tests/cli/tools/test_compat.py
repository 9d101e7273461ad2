"""``ottla compat``: the suite on a broker, in small pieces of it."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

import ottla
from ottla.compat_tests import toolchains

from ..helpers.command import LIMIT_S, Command
from ..helpers.terminal import on_terminal

QUICK = ("--client", "kafka-python", "python/test_produce.py", "-k", "test_keys_choose_partitions")
"""A test in a file that is named: to read the whole suite takes seconds."""
RECORDS = "produce: partitions, batches"


def on(broker: ottla.Broker, *arguments: str) -> tuple[str, ...]:
    """The command's arguments, for this broker."""
    return ("compat", "--bootstrap-server", broker.bootstrap_servers, *arguments)


@pytest.mark.slow
def test_json_of_one_test(command: Command, broker: ottla.Broker) -> None:
    done = command.run(*on(broker, *QUICK, "--json", "-"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["ottla: 1 test", "ottla: 1 of 1 test, 0 failed"]
    document = json.loads(done.stdout)
    assert (document["broker"], document["summary"]) == (broker.bootstrap_servers, {"pass": 1})
    (client,) = document["clients"]
    assert client["name"] == "kafka-python"
    assert client["version"].startswith("3.")
    (cell,) = document["cells"]
    assert (cell["client"], cell["capability"], cell["outcome"]) == ("kafka-python", RECORDS, "pass")
    (test,) = cell["tests"]
    assert test["test"] == "python/test_produce.py::test_keys_choose_partitions[kafka-python]"


@pytest.mark.slow
def test_a_cluster_is_started_and_what_needs_one_broker_is_left_out(command: Command) -> None:
    toolchains.java()  # for ZooKeeper; without it nothing passes
    picked = ("--client", "kafka-python", "--client", "wire", "-k", "test_keys_choose_partitions or test_features")
    done = command.run(
        "compat", "--brokers", "2", *picked, "python/test_produce.py", "raw/test_transactions.py", "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["broker"] == f"Ottla {ottla.__version__}, 2 brokers"
    assert document["command"].startswith("ottla compat --brokers 2 --client kafka-python")
    assert document["summary"].pop("pass") == 1
    assert document["summary"].keys() == {"n/a"}


@pytest.mark.slow
def test_a_client_goes_before_its_topics(command: Command, broker: ottla.Broker) -> None:
    """One that still ran would ask for a topic that is gone, and so create it again, to stay on the user's broker."""
    with broker.requests.recording():
        done = command.run(
            *on(broker, "--client", "kafka-python", "python/test_groups.py", "-k", "test_commit_metadata")
        )
    assert done.returncode == 0, done.stderr
    apis = [request.api for request in broker.requests.where() if request.api in ("LeaveGroup", "DeleteTopics")]
    assert apis == ["LeaveGroup", "DeleteTopics"]


@pytest.mark.slow
def test_without_a_broker_it_starts_one(command: Command) -> None:
    del command.environment["OTTLA_BOOTSTRAP_SERVERS"]
    done = command.run("compat", "--client", "kafka-python", "-k", "test_keys_choose_partitions")
    assert (done.returncode, done.stdout) == (0, f"kafka-python\t{RECORDS}\tpass\t1\t\n"), done.stderr


@pytest.mark.slow
def test_a_failure(command: Command, broker: ottla.Broker, tmp_path: Path) -> None:
    page, document = tmp_path / "page.html", tmp_path / "all.json"
    with broker.faults.add(api="Produce", error="INVALID_RECORD", count=None):
        done = command.run(*on(broker, *QUICK, "--html", str(page), "--json", str(document)))
    assert done.returncode == 1
    client, row, outcome, tests, reason = done.stdout.rstrip("\n").split("\t")
    assert (client, row, outcome, tests) == ("kafka-python", RECORDS, "fail", "1")
    assert any(line.startswith("fail: kafka-python: ") and reason in line for line in done.stderr.splitlines())
    (cell,) = json.loads(document.read_text())["cells"]
    assert cell["reasons"] == [reason]
    assert "test_produce.py" in cell["tests"][0]["trace"]
    assert "<pre>" in page.read_text()


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_is_told(command: Command, broker: ottla.Broker, tmp_path: Path) -> None:
    """As where a package is missing. Nothing is run then, of what can be read neither."""
    (tmp_path / "without_a_module.py").write_text(
        "import sys\nsys.modules['ottla.compat_tests.spark.killing'] = None\n"
    )
    command.environment["PYTHONPATH"] = str(tmp_path)
    everything = (word for word in QUICK if not word.endswith(".py"))
    why = command.refused(*on(broker, *everything, "-p", "without_a_module"))
    assert re.fullmatch(
        r"the suite cannot be read: spark/test_\w+\.py: .*import of ottla\.compat_tests\.spark\.killing halted.* "
        r"\(and \d+ more; --debug shows all\)",
        why,
    )


@pytest.mark.slow
def test_ctrl_c_ends_it(command: Command, broker: ottla.Broker) -> None:
    running = command.start(*on(broker, "--client", "kafka-python", "python/test_groups.py"))
    assert running.stderr is not None
    first = running.stderr.readline().decode()
    assert re.fullmatch(r"ottla: \d+ tests\n", first)
    running.send_signal(signal.SIGINT)
    printed, _ = running.communicate(timeout=LIMIT_S)
    assert (running.returncode, printed) == (130, b"")


@pytest.mark.slow
def test_what_is_not_run_is_told(command: Command, broker: ottla.Broker) -> None:
    clean = ("--client", "kafka-python-2", "--details", "test_restart.py", "python/test_admin.py", "-k")
    printed = command(*on(broker, *clean, "clean_restart or log_dirs"))
    rows = {line.split("\t")[1]: line.split("\t")[2:] for line in printed.splitlines()}
    assert rows.keys() == {"log dirs", "restart: everything is still there"}
    assert rows["log dirs"][:2] == ["n/a", "1"]
    assert "DescribeLogDirs" in rows["log dirs"][2]
    assert rows["restart: everything is still there"][:2] == ["not run", "1"]


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "outcome", "code"), [("false", "skipped", 0), ("true", "fail", 1)])
def test_a_missing_toolchain_is_told(command: Command, broker: ottla.Broker, ci: str, outcome: str, code: int) -> None:
    command.environment |= {"OTTLA_KAFKA_PYTHON_2": "/no/such/python", "CI": ci}
    done = command.run(*on(broker, "--client", "kafka-python-2", *QUICK[2:]))
    client, _, found, _, reason = done.stdout.rstrip("\n").split("\t")
    assert (client, found, done.returncode) == ("kafka-python-2", outcome, code)
    assert reason.startswith("no virtualenv with kafka-python 2.x at /no/such/python")


@pytest.mark.slow
def test_a_terminal_gets_a_table_as_wide_as_it_is(command: Command, broker: ottla.Broker) -> None:
    words = ("--client", "aiokafka", *QUICK)
    for columns, heads in (("100", 1), ("50", 2)):
        lines = on_terminal(command, *on(broker, *words), NO_COLOR="1", COLUMNS=columns).splitlines()
        assert sum(line.startswith(RECORDS) and "pass" in line for line in lines) == heads
        assert lines[-1].startswith("2 passed, in ")


@pytest.mark.slow
def test_refusals_are_a_line(command: Command, broker: ottla.Broker) -> None:
    assert command.refused("compat", "-b", "127.0.0.1:1").startswith("no broker answers at 127.0.0.1:1 (connection ref")
    why = command.refused(*on(broker, "--client", "unknown"), code=2)
    assert why.startswith("there is no client unknown, only kafka-python, kafka-python-2,")
    assert (
        command.refused(*on(broker, "--json", "/no/such/x.json"), code=2)
        == "/no/such/x.json: there is no such directory"
    )
    assert command.refused("compat", "--broker", "redpanda", code=2).startswith("--broker takes ottla or kafka")
    assert command.refused(*on(broker, "--nope"), code=2) == "pytest: unrecognized arguments: --nope"
    one_file = ("python/test_produce.py", "-k")
    assert command.refused(*on(broker, *one_file, "a b"), code=2).startswith("pytest: Wrong expression passed to '-k'")
    assert command.refused(*on(broker, *one_file, "no_such_test"), code=2) == "these options leave no test to run"
