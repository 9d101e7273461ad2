"""The differences of a cluster's clocks from this machine's, from times in responses.

Two responses carry a time of a node's own clock:

- DescribeQuorum: the leader of the quorum puts its present time where it tells of its own fetch (KIP-836). It costs one request.
- Produce, of a topic whose records get the time of their append (``message.timestamp.type=LogAppendTime``): the leader's time.
  That needs a topic with a partition on each broker, which is made and deleted again, so it is done only on request.

A request that leaves at ``t0`` and whose response comes at ``t1`` was handled in between. The difference is taken at the middle,
and its error is at most half of ``t1 - t0`` and a millisecond. Of several tries the quickest counts.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import kafka.errors

from ....base.wording import plural
from ....view.quorum_rows import describe_quorum_request
from ....wire.messages.describe_quorum import DescribeQuorumResponse
from ..client import Admin, ClusterConnection
from ..running import ToolError, explain
from .diagnosis import Area, Diagnosis, note, ok, problem, unknown, warning
from .examined import ExaminedCluster

TOPIC_PREFIX = "ottla-doctor-"
_WARNING_MS = 1_000
"""A machine whose clock is synchronised is off by some milliseconds."""
_PROBLEM_MS = 30_000
"""So much ``sasl.oauthbearer.clock.skew.seconds`` allows for; tokens and transactions end too soon or too late beyond it."""
_TRIES = 3
_LIMIT_S = 15.0
_MEND = "set the clock by NTP (chronyc tracking, timedatectl)"


class ClockReading(NamedTuple):
    """The difference of a node's clock from this machine's in milliseconds, above 0 where it is ahead, and its error."""

    ahead_ms: float
    error_ms: float

    @property
    def at_least_ms(self) -> float:
        """What it is off in any case."""
        return max(abs(self.ahead_ms) - self.error_ms, 0.0)


def reading(sent: float, received: float, their_ms: int) -> ClockReading:
    """From this machine's times in seconds, and their time in whole milliseconds, which is up to one later."""
    middle = (sent + received) / 2 * 1000
    return ClockReading(their_ms + 0.5 - middle, (received - sent) / 2 * 1000 + 0.5)


async def of_quorum_leader(cluster: ExaminedCluster) -> tuple[int, ClockReading] | None:
    """The leader of the quorum with its reading; None where there is none, or it does not tell. Raises OSError, KafkaError."""
    best: tuple[int, ClockReading] | None = None
    for _ in range(_TRIES):
        sent = time.time()
        response: DescribeQuorumResponse = await cluster.client.ask_any(describe_quorum_request())
        received = time.time()
        told = [each for topic in response.topics for each in topic.partitions]
        leaders = [v for each in told for v in each.current_voters if v.replica_id == each.leader_id]
        if not leaders or leaders[0].last_fetch_timestamp < 0:
            return best
        found = reading(sent, received, leaders[0].last_fetch_timestamp)
        if best is None or found.error_ms < best[1].error_ms:
            best = leaders[0].replica_id, found
    return best


def by_topic(connection: ClusterConnection, brokers: Sequence[int]) -> dict[int, ClockReading]:
    """The readings of brokers, by a topic that is made for it. Raises ToolError, KafkaError."""
    with closing(connection.admin()) as admin, _topic(admin, brokers) as topic:
        producer = connection.producer(acks=1, linger_ms=0, retries=2, enable_idempotence=False)
        with closing(producer):
            return {broker: _best(producer, topic, number) for number, broker in enumerate(brokers)}


@contextlib.contextmanager
def _topic(admin: Admin, brokers: Sequence[int]) -> Iterator[str]:
    name = TOPIC_PREFIX + uuid.uuid4().hex[:12]
    wanted: Mapping[str, object] = {
        "assignments": {number: [broker] for number, broker in enumerate(brokers)},
        "configs": {"message.timestamp.type": "LogAppendTime"},
    }
    admin.create_topics({name: wanted}, wait_for_metadata=True)
    try:
        yield name
    finally:
        try:
            admin.delete_topics([name])
        except kafka.errors.KafkaError as error:
            raise ToolError(
                f"the topic {name} is left; 'ottla topics delete {name}' deletes it: {explain(error)}"
            ) from None


def _best(producer: object, topic: str, partition: int) -> ClockReading:
    found = []
    for _ in range(_TRIES):
        sent = time.time()
        written = producer.send(topic, value=b"", partition=partition).get(timeout=_LIMIT_S)  # type: ignore[attr-defined]
        found.append(reading(sent, time.time(), written.timestamp))
    return min(found, key=lambda each: each.error_ms)


def lines(
    leader: tuple[int, ClockReading] | None, measured: Mapping[int, ClockReading], brokers: Sequence[int]
) -> list[Diagnosis]:
    """The lines of all readings; brokers without one are named."""
    known = dict(measured)
    if leader is not None:
        known.setdefault(*leader)
    found = [_line(node, each, node in brokers) for node, each in sorted(known.items())]
    found += _among(known)
    if missing := [str(broker) for broker in brokers if broker not in known]:
        whose = f"{plural(len(missing), 'clock')} of {plural(len(missing), 'broker')} {', '.join(missing)}"
        what = f"The {whose}: no response has the time unless a record is written"
        found.append(note(Area.CLOCKS, what, "ottla doctor --probe-clocks"))
    return found


def _line(node: int, found: ClockReading, is_broker: bool) -> Diagnosis:
    whose = f"The clock of {'broker' if is_broker else 'controller'} {node}"
    error = f"±{found.error_ms:.0f} ms"
    if found.at_least_ms < _WARNING_MS:
        return ok(Area.CLOCKS, f"{whose} is as this machine's: {found.ahead_ms:+.0f} {error}")
    how = "ahead of" if found.ahead_ms > 0 else "behind"
    what = f"{whose} is {abs(found.ahead_ms) / 1000:.1f} s {how} this machine's ({error})"
    return (problem if found.at_least_ms >= _PROBLEM_MS else warning)(Area.CLOCKS, what, _MEND)


def _among(known: Mapping[int, ClockReading]) -> Iterator[Diagnosis]:
    """Where the clocks of nodes differ from each other, not only from this machine's."""
    if len(known) < 2:
        return
    (low, first), *_, (high, last) = sorted(known.items(), key=lambda each: each[1].ahead_ms)
    apart = last.ahead_ms - first.ahead_ms
    if apart - first.error_ms - last.error_ms >= _WARNING_MS:
        yield warning(Area.CLOCKS, f"The clocks of {low} and {high} are {apart / 1000:.1f} s apart", _MEND)


def not_measured(error: Exception) -> Diagnosis:
    """The line where the topic for it could not be used."""
    return unknown(Area.CLOCKS, f"The clocks of brokers, by a topic: {explain(error)}")
