"""Walks of groups on brokers of two kinds: ``python -m ottla.tests.kafka_groups --seeds 1-20``; with ``--share`` of share groups.

Each seed has new brokers. A difference is printed with what the group was asked before. ``--record FILE`` keeps a walk of
Apache Kafka for the quick tests: the first seed alone, and no other broker.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ottla.compat_tests import brokers

from .helpers import broker_player, share_player
from .helpers.broker_player import BrokerPlayer
from .helpers.comparison import Comparison, RandomWalk
from .helpers.recording import write_recording
from .helpers.share_player import SharePlayer
from .helpers.share_walk import ShareWalk
from .helpers.walk import Walk


@dataclass(frozen=True)
class KindOfWalk:
    """A walk, and what it needs."""

    make: Callable[[int], RandomWalk]
    """Takes a seed."""
    player: Callable[[str], BrokerPlayer]
    """Takes the address of a broker."""
    properties: Mapping[str, str]
    """Of the broker."""


CONSUMER = KindOfWalk(Walk, BrokerPlayer, broker_player.PROPERTIES)
SHARE = KindOfWalk(ShareWalk, SharePlayer, share_player.PROPERTIES)


@contextlib.contextmanager
def players(walk: KindOfWalk, kinds: Sequence[str]) -> Iterator[list[BrokerPlayer]]:
    """New brokers of these kinds."""
    with contextlib.ExitStack() as stack:
        made = []
        for kind in kinds:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            broker = stack.enter_context(brokers.process(kind, folder, properties=walk.properties))
            made.append(stack.enter_context(contextlib.closing(walk.player(broker.bootstrap))))
        yield made


def main() -> int:
    """The exit status: 1 when there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", action="store_true", help="of share groups")
    parser.add_argument("--seeds", default="1-5", help="from-to")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--brokers", default="kafka,ottla", help="two kinds of kafka and ottla")
    parser.add_argument("--most", type=int, default=1, help="differences of a seed that are looked for")
    parser.add_argument("--shown", type=int, default=12, help="steps of a group that are printed with a difference")
    parser.add_argument("--record", type=Path, metavar="FILE")
    options = parser.parse_args()
    walk = SHARE if options.share else CONSUMER
    first, _, last = options.seeds.partition("-")
    found = 0
    for seed in range(int(first), int(last or first) + 1):
        with players(walk, ["kafka"] if options.record else options.brokers.split(",")) as made:
            comparison = Comparison(walk.make, *made)
            comparison.run(seed, options.requests, options.most)
        for difference in comparison.differences:
            print(difference, *difference.history[-options.shown :], sep="\n    ")
        print(
            f"seed {seed}: {len(comparison.differences)} differences",
            dict(sorted(comparison.counts.items())),
            flush=True,
        )
        found += len(comparison.differences)
        if options.record:
            write_recording(options.record, seed, comparison.played)
            break
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
