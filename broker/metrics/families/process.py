"""The process: its one event loop."""

from __future__ import annotations

from .family import Family, Kind, families_of, gauge

LOOP_LAG = Family(
    "ottla_loop_lag_seconds",
    Kind.HISTOGRAM,
    (),
    "How late a timer fires that is set four times a second: everything a client asks waits as long.",
)
LOOP_TASKS = gauge("ottla_loop_tasks", "", "Tasks of the event loop.")

FAMILIES: tuple[Family, ...] = families_of(globals())
