"""Spark's ``kafka`` format where clients must say who they are: Kafka's client properties, with ``kafka.`` before each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests.clients.security import client_properties
from ottla.compat_tests.security.broker import OPEN, PRIVATE, SecuredBroker
from ottla.compat_tests.security.ways import SPARK, Way, ways

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.client("spark"),
    pytest.mark.restart,
    pytest.mark.one_broker("it has a broker of its own, with users and listeners"),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Which listeners."""
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", ways(metafunc.config, SPARK), ids=str)


def options(secured: SecuredBroker, way: Way, *, wrong: bool = False) -> dict[str, str]:
    login = client_properties(secured.way_in(*way, wrong=wrong))
    properties = {"bootstrap.servers": secured.address(*way), "max.block.ms": "20000", **login}
    return {f"kafka.{name}": value for name, value in properties.items()}


def write(spark: SparkSession, topic: str, options: dict[str, str]) -> None:
    rows = spark.range(20).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    rows.write.format("kafka").options(**options, topic=topic).save()


@pytest.mark.capability("authentication")
def test_writes_and_reads(
    spark: SparkSession, secured: SecuredBroker, way: Way, fresh_name: Callable[[str], str]
) -> None:
    topic = OPEN + fresh_name("topic")
    group = {"kafka.group.id": OPEN + fresh_name("group")}
    write(spark, topic, options(secured, way))
    read = spark.read.format("kafka").options(**options(secured, way), **group, subscribe=topic).load()
    assert {bytes(row.value) for row in read.collect()} == {b"%d" % number for number in range(20)}


@pytest.mark.capability("authentication: refused")
def test_wrong_secret(spark: SparkSession, secured: SecuredBroker, way: Way, fresh_name: Callable[[str], str]) -> None:
    if way.how is None:
        return
    with pytest.raises(Exception, match=r"(?i)authentication|handshake|invalid"):
        write(spark, OPEN + fresh_name("topic"), options(secured, way, wrong=True))


@pytest.mark.capability("authorization: no right")
def test_no_right(spark: SparkSession, secured: SecuredBroker, way: Way) -> None:
    with pytest.raises(Exception, match=r"Not authorized to access topics"):
        write(spark, PRIVATE, options(secured, way))
