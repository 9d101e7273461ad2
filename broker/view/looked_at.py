"""What was looked at where no trouble was found, in words: a page claims no more than that."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.wording import counted, plural
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
