"""One Spark session for the run, because it takes some ten seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat
from ottla.spark.session import SparkSetupError, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
def kafka(spark: SparkSession, bootstrap: str, tmp_path: Path) -> KafkaFormat:
    """Spark's ``kafka`` format on the broker under test."""
    return KafkaFormat(spark, bootstrap, tmp_path)


@pytest.fixture
def stock(sessions: Callable[[str], ClientSession]) -> ClientSession:
    """The client that writes and checks records."""
    return sessions("kafka-python")
