"""The plugin keeps kafka-python's warnings of its own code from a user's test run, and no others."""

from __future__ import annotations

from pathlib import Path

from ..helpers.pages import run_pytest

WARNS = """
import warnings

from kafka import KafkaProducer

def test_it(ottla_broker, kafka_topic):
    with KafkaProducer(bootstrap_servers=ottla_broker.bootstrap_servers) as producer:
        producer.send(kafka_topic, b"x").get(timeout=60)
    warnings.warn("read_text is deprecated", DeprecationWarning)
    warnings.warn("open_text is deprecated", DeprecationWarning)
    warnings.warn("another one", DeprecationWarning)
"""


def test_only_kafka_pythons_own_warnings_are_left_out(tmp_path: Path) -> None:
    assert run_pytest(WARNS, tmp_path) == {"passed": 1, "warnings": 3}
