"""``python -m bench.publish``: the cost of a change of the cluster's metadata to a broker.

One partition among many, and one partition of each topic, are published to a cache without publishers: the time is that of the
new image. It must not grow with what has not changed.
"""

from __future__ import annotations

import argparse
import timeit

from ottla.metadata.delta import ClusterDelta, TopicDelta
from ottla.metadata.types import AdvertisedListener, BrokerRegistration, PartitionRegistration
from ottla.replication.metadata_cache import MetadataCache

_BROKERS = [BrokerRegistration(number, (AdvertisedListener("PLAINTEXT", "host", 9092),)) for number in range(3)]


def _delta(topics: int, numbers: range, leader_epoch: int) -> ClusterDelta:
    state = PartitionRegistration(0, leader_epoch, 0, (0, 1, 2), (0, 1, 2))
    partitions = dict.fromkeys(numbers, state)
    changed = [TopicDelta(f"topic-{number}", number.to_bytes(16, "big"), partitions) for number in range(1, topics + 1)]
    return ClusterDelta(0, _BROKERS, changed)


def _microseconds(cache: MetadataCache, delta: ClusterDelta, times: int) -> float:
    return min(timeit.repeat(lambda: cache.publish(delta), number=times, repeat=5)) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=10, help="of each topic")
    arguments = parser.parse_args()
    cache = MetadataCache()
    cache.publish(_delta(arguments.topics, range(arguments.partitions), 0))
    one = _microseconds(cache, _delta(1, range(1), 1), 200)
    each = _microseconds(cache, _delta(arguments.topics, range(1), 2), 5)
    print(f"{arguments.topics} topics of {arguments.partitions} partitions")
    print(f"one partition changed: {one:.1f} µs; one of each topic: {each / 1000:.2f} ms")


if __name__ == "__main__":
    main()
