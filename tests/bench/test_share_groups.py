"""The light consumers of the benchmark of share groups: together they read all that it writes, and each record once."""

from __future__ import annotations

import ottla
from ottla.bench.share_groups import ROWS, TOPIC, begin_with_the_first_record, fill
from ottla.bench.share_readers import joined, read
from ottla.compat_tests.raw.share_groups.wire_share import ShareGroup
from ottla.compat_tests.wire_client import Operator, connect

RECORDS = 3_000
INTERVALS = {
    "group.share.heartbeat.interval.ms": "50",
    "group.share.min.heartbeat.interval.ms": "50",
    "group.share.assignment.interval.ms": "0",
}


def test_consumers_read_all_records_and_each_once() -> None:
    row = ROWS[-1]
    with ottla.Broker(properties=INTERVALS) as broker:
        bootstrap = broker.bootstrap_servers
        Operator(bootstrap).create_topic(TOPIC, row.partitions, {})
        fill(bootstrap, row, RECORDS)
        begin_with_the_first_record(bootstrap, "g")
        readers = joined(bootstrap, 4, "g", TOPIC)
        _, _, total = read(readers, RECORDS).split()
        assert int(total) == RECORDS
        with connect(bootstrap) as wire:
            group = ShareGroup(wire, "g", TOPIC)
            consumer = group.consumer("late", TOPIC)
            assert consumer.look(add=range(row.partitions)) == [], "nothing is left to be delivered"
