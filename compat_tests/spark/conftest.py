"""The fixture for the Spark session, which the whole run shares because its start takes some ten seconds."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients.security import Security, client_properties
from ottla.compat_tests.security.fixtures import secured  # for pytest to find here
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark import jvm
from ottla.compat_tests.spark.kafka_format import KafkaFormat
from ottla.spark.session import SparkSetupError, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["secured"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is not in the Spark that is installed, or has no release for it, is not applicable to it."""
    try:
        installed = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return  # the session's fixture will say so
    for item in items:
        mark = item.get_closest_marker("since_spark")
        if mark is not None and numbers(installed) < numbers(mark.args[0]):
            reason = f"pyspark {installed} lacks it: it is new in Spark {mark.args[0]}"
            item.add_marker(pytest.mark.not_offered(reason))
        mark = item.get_closest_marker("until_spark")
        if mark is not None and numbers(installed) > numbers(mark.args[0]):
            item.add_marker(pytest.mark.not_offered(f"{mark.args[1]} has no release for pyspark {installed}"))


def numbers(version: str) -> tuple[int, ...]:
    """The release that a version belongs to, as in (4, 1)."""
    return tuple(int(part) for part in version.split(".")[:2])


@pytest.fixture(scope="session", autouse=True)
def short_lived_jvms() -> Iterator[None]:
    """Sparks of the tests, and of the commands that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(jvm.VARIABLE, jvm.options())
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with two cores."""
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    try:
        session = build_session("compat", master="local[2]", settings=settings)
    except SparkSetupError as error:
        toolchains.missing(str(error))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def kafka(spark: SparkSession, bootstrap: str, security: Security, tmp_path: Path) -> KafkaFormat:
    """Spark's ``kafka`` format on the broker under test."""
    return KafkaFormat(spark, bootstrap, tmp_path, client_properties(security))


@pytest.fixture
def stock(sessions: Callable[[str], ClientSession]) -> ClientSession:
    """The client that writes and checks records."""
    return sessions("kafka-python")
