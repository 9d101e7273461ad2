"""The options of Spark's ``kafka`` source that jobs have in common; where to begin is for each of them to say."""

from __future__ import annotations

from collections.abc import Sequence

# Spark's reader asks for both ends of the partition after each poll, so a poll should bring many records.
READER_DEFAULTS = {"kafka.max.poll.records": "20000"}


def reader_options(
    bootstrap_servers: str,
    topics: Sequence[str],
    pattern: str | None,
    *,
    fail_on_data_loss: bool,
    max_offsets_per_trigger: int | None,
) -> dict[str, str]:
    """Read the topics named, or with a pattern those whose whole name matches; with headers."""
    options = {
        **READER_DEFAULTS,
        "kafka.bootstrap.servers": bootstrap_servers,
        "failOnDataLoss": str(fail_on_data_loss).lower(),
        "includeHeaders": "true",
    }
    if pattern is not None:
        options["subscribePattern"] = pattern
    else:
        options["subscribe"] = ",".join(topics)
    if max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(max_offsets_per_trigger)
    return options
