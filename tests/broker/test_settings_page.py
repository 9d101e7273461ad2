"""The reference page of settings: complete, and the committed one is the one the source gives."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.config_file import declared_classes
from ottla.broker.settings_page import page

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def test_committed_page_is_up_to_date() -> None:
    assert COMMITTED.read_text() == page(), "run `make docs`"


def test_every_setting_is_on_the_page_with_its_meaning() -> None:
    lines = page().splitlines()
    for settings in declared_classes():
        for declared in settings.declared.values():
            name = declared.name or declared.topic
            (line,) = [line for line in lines if line.startswith((f"| `{name}` |", f"|  | `{name}` |"))]
            assert declared.doc.rstrip(".") in line.replace("\\|", "|")
            assert declared.doc, f"{name} says nothing about itself"
