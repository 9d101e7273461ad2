"""Round-robin assignment of a new partition's replicas to brokers, by Kafka's rules (pure functions).

First replicas go round the brokers from a random start; the further replicas of a partition follow at a shift that grows
by one each time the round is complete, so that the same brokers do not always follow each other. If all brokers have a rack,
neighbours in the list are in different racks, and a rack gets a second replica only when every rack has one (KIP-36).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...base.errors import ErrorCode, KafkaError


def assign_replicas(
    racks: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    randomness: random.Random,
    *,
    start_index: int | None = None,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Replicas by partition, for ``partition_count`` partitions numbered from ``first_partition`` on.

    ``racks`` holds the live brokers. ``start_index`` fixes the place in the list of brokers where the round starts, which
    keeps partitions added later in step with the ones before. Raises KafkaError INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR.
    """
    if partition_count <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(racks):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(racks)}.",
        )
    known_racks = {broker: rack for broker, rack in racks.items() if rack is not None}
    rack_aware = len(known_racks) == len(racks)
    brokers = rack_alternated(known_racks) if rack_aware else sorted(racks)
    rack_count = len(set(known_racks.values())) if rack_aware else 1
    start = randomness.randrange(len(brokers)) if start_index is None else start_index
    shift = randomness.randrange(len(brokers)) if start_index is None else start_index
    assignment = {}
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        followers = _followers(brokers, first, shift * rack_count)
        if rack_aware:
            assignment[partition] = _spread(brokers[first], followers, known_racks, replication_factor)
        else:
            assignment[partition] = (brokers[first], *followers[: replication_factor - 1])
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers, one of each rack in turn, racks by name and brokers by id."""
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    longest = max(map(len, by_rack.values()))
    return [by_rack[rack][i] for i in range(longest) for rack in sorted(by_rack) if i < len(by_rack[rack])]


def _followers(brokers: Sequence[int], first: int, shift: int) -> list[int]:
    """Every other broker, in the order in which the partition led by ``brokers[first]`` takes them."""
    others = len(brokers) - 1
    return [brokers[(first + 1 + (shift + i) % others) % len(brokers)] for i in range(others)]


def _spread(leader: int, followers: Sequence[int], racks: Mapping[int, str], count: int) -> tuple[int, ...]:
    """``count`` replicas beginning with ``leader``; no rack twice while another has none."""
    chosen = [leader]
    rack_count = len(set(racks.values()))
    position = 0
    while len(chosen) < count:
        broker = followers[position % len(followers)]
        position += 1
        used = {racks[other] for other in chosen}
        if broker not in chosen and (racks[broker] not in used or len(used) == rack_count):
            chosen.append(broker)
    return tuple(chosen)


def check_assignment(
    assignment: Mapping[int, Sequence[int]], live: Mapping[int, object], first_partition: int = 0
) -> None:
    """Refuse invalid replicas that a client names. Raises KafkaError INVALID_REPLICA_ASSIGNMENT."""

    def refuse(why: str) -> None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)

    expected = range(first_partition, first_partition + len(assignment))
    if sorted(assignment) != list(expected):
        refuse("partitions should be a consecutive 0-based integer sequence")
    sizes = {len(replicas) for replicas in assignment.values()}
    if 0 in sizes:
        refuse("A partition was given an empty replica list.")
    if len(sizes) != 1:
        refuse("All partitions should have the same number of replicas.")
    for partition, replicas in assignment.items():
        if len(set(replicas)) != len(replicas):
            refuse(f"Partition {partition} was assigned a broker twice: {', '.join(map(str, replicas))}.")
        unknown = [broker for broker in replicas if broker not in live]
        if unknown:
            refuse(f"Partition {partition} was assigned to unknown broker(s) {', '.join(map(str, unknown))}.")
