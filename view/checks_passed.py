"""The scope of checks that found no problem, in words for the console's pages.

A page claims no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.wording import counted, plural
from .quorum_rows import QuorumRow
from .rows import GroupRow


def partitions_and_groups(partitions: int, groups: Sequence[GroupRow] | None) -> list[str]:
    """Of ``partitions`` leaders and in-sync replicas; of groups whether they missed records. None: groups were not looked at."""
    found = [f"the leaders and in-sync replicas of {counted(partitions, 'partition')}"]
    if groups is not None:
        unknown = sum(row.unknown for row in groups)
        known = sum(row.partitions for row in groups) - unknown
        what = f"what {counted(len(groups), 'group')} {plural(len(groups), 'has', 'have')} committed in"
        rest = f", not in {unknown} more" if unknown else ""
        found.append(f"{what} {counted(known, 'partition')}{rest}")
    return found


def of_quorum(quorum: QuorumRow | None) -> tuple[list[str], list[str]]:
    """What is wrong with a quorum, in sentences, and what was looked at; nothing where there is none."""
    if quorum is None:
        return [], []
    count = len(quorum.voters)
    return list(quorum.warnings()), [f"the {counted(count, 'voter')} of the quorum"] if count else []
