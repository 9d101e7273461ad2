"""What brokers of both kinds have on disk of the same partitions, as Apache Kafka 4.3's own tool sees it."""

from __future__ import annotations

import pytest

from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command

from ..mixed.test_mixed_balance import check_balance
from ..mixed.test_mixed_files import check_dumps
from .on_quorum import QuorumMixed

pytestmark = pytest.mark.slow


def test_kafka_dump_log_says_the_same_of_both(mixed: QuorumMixed, topic: str) -> None:
    command = [*java_command(mixed.cluster.broker(1).folder, *SHORT_LIVED), MAIN_CLASSES["dump-log"]]
    check_dumps(mixed, topic, command)


def test_a_skewed_topic_is_spread(mixed: QuorumMixed, topic: str) -> None:
    check_balance(mixed, topic)
