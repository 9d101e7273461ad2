"""The parts of `make test` and the lanes of `make test-all`: their tests, and their needs beside Python.

Every test of the project is in a lane. A slow test of ``tests/`` that no other lane names is in ``programs``; a quick one is in
``quick``; and the tests of ``compat_tests/`` belong to a client, whose lane ``CLIENTS_OF`` gives, or to a file that has a lane of
its own. tests/tools/test_suite.py holds that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

VENV, VENV_SPARK_NEWEST, VENV_PYPY = ".venv", ".venv-spark-newest", ".venv-pypy"


class Selection(NamedTuple):
    """Tests that one pytest runs: what it is given as paths, and its other options."""

    paths: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """Tests that run as one command and have one outcome."""

    name: str
    about: str
    tests: Selection | None = None
    """None: ``make static``."""
    needs: tuple[str, ...] = ()
    """Steps of tools/setup.sh."""
    workers: int = 2
    """Processes of pytest; with more than one it runs on pytest-xdist."""
    shares_fixtures: bool = True
    """tests/xdist_groups.py and compat_tests/xdist_groups.py say which tests stay together in one process."""
    venv: str = VENV


SLOW = "slow and not computes"
COMPUTES = "slow and computes"
IN_TEST = "not in_lane_only"
"""What `make test` has of the slow tests."""

FOLDERS_OF: Mapping[str, tuple[str, ...]] = {
    "pages": (
        "tests/test_docs_site.py",
        "tests/test_packaging.py",
        "tests/test_readme.py",
        "tests/test_readme_cluster.py",
        "tests/test_recipes.py",
        "tests/cli/processes/test_transcripts.py",
        "tests/cli/processes/test_quorum_page.py",
        "tests/cli/processes/test_listeners_page.py",
        "tests/testing/test_page.py",
    ),
    "release": ("tests/test_release.py", "tests/test_image.py", "tests/test_workflow.py"),
    "browser": ("tests/console",),
    "zookeeper": (
        "tests/broker/processes/test_serve_zookeeper.py",
        "tests/broker/processes/test_zookeeper_away.py",
        "tests/cli/tools/replicas/test_drain.py",
        "tests/compat",
        "tests/controller",
        "tests/replication",
        "tests/bench",
        "tests/jepsen",
    ),
    "kafka-files": (
        "tests/kafka_files",
        "tests/kafka_groups",
        "tests/java",
        "tests/log",
        "tests/wire",
        "tests/handlers",
    ),
    "mixed": ("tests/mixed",),
    "mixed-quorum": ("tests/quorum_mixed",),
    "quorum-clients": ("tests/quorum_mixed/test_quorum_clients.py",),
    "ottla-quorum": (
        "tests/quorum_mixed/test_doctor_at_kafka.py",
        "tests/quorum_mixed/test_folders_change_over.py",
        "tests/quorum_mixed/test_formatted_by_kafka.py",
        "tests/quorum_mixed/test_group_configs.py",
        "tests/quorum_mixed/test_kafka_brokers.py",
        "tests/quorum_mixed/test_ottla_controllers.py",
        "tests/quorum_mixed/test_share_group_failover.py",
        "tests/quorum_mixed/test_tools_as_at_kafkas.py",
        "tests/quorum_mixed/test_tools_of_their_own.py",
    ),
    "embedding": ("tests/testing",),
    "command-line": ("tests/cli",),
}
"""Files and folders of slow tests by lane; a file goes before the folder that holds it."""
CLIENTS_OF: Mapping[str, tuple[str, ...]] = {
    "python-clients": ("kafka-python", "kafka-python-2", "confluent-kafka", "aiokafka", "wire"),
    "java-clients": ("java", "java-3.9"),
    "go-clients": ("franz-go", "sarama", "kafka-go"),
    "js-clients": ("kafkajs", "platformatic"),
    "rust-clients": ("rdkafka", "rskafka"),
    "kcat": ("kcat",),
    "kafka-tools": ("java-tools",),
    "streams": ("kafka-streams",),
    "connect": ("connect",),
    "spark": ("spark",),
}
NEEDS_OF: Mapping[str, tuple[str, ...]] = {
    "python-clients": ("kafka-python-2",),
    "java-clients": ("java",),
    "go-clients": ("go",),
    "js-clients": ("js",),
    "rust-clients": ("rust",),
    "kcat": ("kcat",),
    "kafka-tools": ("kafka",),
    "streams": ("kafka",),
    "connect": ("kafka",),
    "spark": ("java",),
}
"""Of the lanes of clients."""
CODECS = "compat_tests/python/test_codecs_across.py"
"""Each client reads what each other has written, so it needs all of them."""
SECURITY = ("compat_tests/security", "compat_tests/spark/test_security.py")


ON_PYPY = (
    *(
        f"tests/{layer}"
        for layer in (
            "base",
            "wire",
            "metadata",
            "log",
            "handlers",
            "group_coordinator",
            "transaction_coordinator",
            "share_coordinator",
            "share_partitions",
        )
    ),
    "tests/broker/listeners/test_connection.py",
    "tests/broker/listeners/test_peer_watch.py",
)
"""Of the other tests many drive clients that PyPy does not run."""


def lane_of_slow(file: str) -> str:
    """The lane of the slow tests in a file of ``tests/`` that do more than compute."""
    names = [(place, lane) for lane, places in FOLDERS_OF.items() for place in places]
    found = [(len(place), lane) for place, lane in names if file == place or file.startswith(f"{place}/")]
    return max(found)[1] if found else "programs"


def slow_tests(*lanes: str, marks: str = SLOW) -> Selection:
    """The slow tests of ``tests/`` in these lanes."""
    places = tuple(place for lane in lanes for place in FOLDERS_OF.get(lane, ("tests",)))
    others = [place for other, taken in FOLDERS_OF.items() if other not in lanes for place in taken]
    inside = [other for other in others if any(other.startswith(f"{place}/") for place in places)]
    return Selection(places, ("-m", marks, *_ignored(inside)))


def clients(names: Sequence[str], *options: str, ignored: Sequence[str] = ()) -> Selection:
    """The tests of some clients."""
    chosen = [word for name in names for word in ("--client", name)]
    return Selection(("compat_tests",), (*chosen, *_ignored([CODECS, *ignored]), *options))


def _ignored(paths: Sequence[str]) -> list[str]:
    return [f"--ignore={path}" for path in paths]


STATIC = Part("static", "ruff, mypy, import-linter, compileall", workers=1)
QUICK = Part(
    "quick",
    "all quick tests",
    Selection(("tests",), ("-m", "not slow")),
    shares_fixtures=False,
)

# Long ones first: they are begun in this order.
PARTS = (
    Part(
        "spark",
        "Spark's Kafka source and sink",
        Selection(
            tuple(
                f"compat_tests/spark/test_{name}.py"
                for name in ("batch_read", "batch_write", "streaming", "ends", "gaps", "data_loss", "restart")
            )
        ),
        needs=("java",),
        workers=1,
    ),
    Part(
        "three-brokers",
        "three processes on ZooKeeper, of which the leader is killed",
        Selection(
            ("compat_tests/test_restart.py", "compat_tests/test_restart_transactions.py"),
            ("--brokers", "3", "--client", "kafka-python"),
        ),
        needs=("java",),
        workers=1,
    ),
    Part(
        "kafka-python",
        "kafka-python's part of compat_tests, each mechanism of SASL at a listener among it",
        Selection(("compat_tests",), ("--client", "kafka-python", "-k", "not test_read_by")),  # they need every client
    ),
    Part(
        "programs",
        "embedding, and the command line",
        slow_tests("embedding", "command-line", marks=f"{SLOW} and {IN_TEST}"),
    ),
    STATIC,
    QUICK,
    Part(
        "simulation",
        "a share of the seeds of each simulation, kept seeds, searches for rules broken on purpose",
        Selection(("tests",), ("-m", f"{COMPUTES} and {IN_TEST}")),
        shares_fixtures=False,
    ),
)


def _client_lanes() -> list[Part]:
    """On one broker and on three; who gets in, and how, has lanes of its own."""
    lanes = []
    for name, names in CLIENTS_OF.items():
        tests = clients(names, ignored=SECURITY)
        lanes.append(Part(name, f"{', '.join(names)} on one broker", tests, NEEDS_OF[name]))
    for name, names in CLIENTS_OF.items():
        tests = clients(names, "--brokers", "3", ignored=SECURITY)
        needs = tuple(dict.fromkeys((*NEEDS_OF[name], "java")))
        lanes.append(Part(f"three-brokers-{name}", f"{', '.join(names)} on three brokers", tests, needs))
    return lanes


_EVERY_CLIENT = ("java", "go", "js", "rust", "kafka-python-2")

LANES = (
    STATIC,
    dataclasses.replace(QUICK, needs=("java",)),
    Part("seeds", "all seeds of the simulations", Selection(("tests",), ("-m", COMPUTES)), shares_fixtures=False),
    Part("embedding", "ottla.Broker, ottla.Cluster, the pytest plugin", slow_tests("embedding"), ("kafka",)),
    Part("command-line", "the ottla command", slow_tests("command-line"), ("java", "zsh")),
    Part("programs", "brokers as processes, and the remaining tests", slow_tests("programs"), ("kafka",)),
    Part("zookeeper", "Ottla on ZooKeeper, jepsen, the benchmark of failovers", slow_tests("zookeeper"), ("kafka",)),
    Part(
        "kafka-files",
        "Apache Kafka's files, serializers and tools; its consumer and share groups",
        slow_tests("kafka-files"),
        ("kafka",),
    ),
    *(
        Part(
            lane,
            f"clusters of Ottla and Apache Kafka 3.9 in one, where {most} has most brokers",
            Selection(("tests/mixed",), ("-m", SLOW, "-k", chosen)),
            ("kafka",),
        )
        for lane, most, chosen in (("mixed", "Ottla", "not mixed-kafka"), ("mixed-kafka", "Kafka", "mixed-kafka"))
    ),
    Part(
        "mixed-quorum",
        "brokers of Ottla in a KRaft cluster of Apache Kafka 4.3.1",
        slow_tests("mixed-quorum"),
        ("kafka",),
    ),
    Part(
        "quorum-clients",
        "stock clients at brokers of Ottla in a KRaft cluster of Apache Kafka 4.3.1",
        slow_tests("quorum-clients"),
        ("kafka", "go"),
    ),
    Part(
        "ottla-quorum",
        "Apache Kafka's brokers and tools on controllers of Ottla, log directories used by both, share groups that fail over",
        slow_tests("ottla-quorum"),
        ("kafka",),
    ),
    Part("pages", "the commands of README and docs, and packaging", slow_tests("pages"), ("kafka", "kcat")),
    Part(
        "release",
        "`make release`; the steps of the image, its services and the workflow",
        slow_tests("release"),
        ("release",),
    ),
    Part("browser", "the console in Chromium", slow_tests("browser"), ("browser", "kafka")),
    *_client_lanes(),
    Part("codecs", "each client reads the records of every other", Selection((CODECS,)), _EVERY_CLIENT),
    *(
        Part(
            f"security-{broker}",
            f"each client at each listener with each mechanism, on {broker.title()}",
            Selection(SECURITY, ("--broker", broker, "--whole-matrix")),
            (*_EVERY_CLIENT, "kcat", "kafka"),
        )
        for broker in ("ottla", "kafka")
    ),
    Part(
        "spark-newest",
        "spark on pyspark 4.2.0, the newest that is tested",
        clients(("spark",), ignored=SECURITY),
        ("java", "spark-newest"),
        venv=VENV_SPARK_NEWEST,
    ),
    Part(
        "pypy",
        "quick tests of the broker's parts, on PyPy",
        Selection(ON_PYPY, ("-m", "not slow and not cpython")),
        ("pypy",),
        shares_fixtures=False,
        venv=VENV_PYPY,
    ),
)
