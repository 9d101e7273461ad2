"""What brokers of both kinds have on disk of the same partitions, as Apache Kafka 4.3's own tool sees it."""

from __future__ import annotations

import pytest

from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command

from ..mixed.helpers.mixed import PATIENCE_S
from ..mixed.test_mixed_balance import check_balance
from ..mixed.test_mixed_files import check_dumps
from .helpers.on_quorum import QuorumMixed

pytestmark = pytest.mark.slow


def test_kafka_dump_log_says_the_same_of_both(mixed: QuorumMixed, topic: str) -> None:
    command = [*java_command(mixed.cluster.broker(1).folder, *SHORT_LIVED), MAIN_CLASSES["dump-log"]]
    check_dumps(mixed, topic, command)


def test_a_skewed_topic_is_spread(mixed: QuorumMixed, topic: str) -> None:
    """Those of other tests would be moved as well, or in its place."""
    others = [name for name in mixed.admin.list_topics(timeout=PATIENCE_S).topics if not name.startswith("__")]
    for name in others:
        mixed.asked(lambda name=name: mixed.admin.delete_topics([name])[name])
    check_balance(mixed, topic)
