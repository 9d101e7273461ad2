"""A page of the console on which a person has so many clicks for a task, beginning at the overview.

A click is a click, or a key that does a click's work, as Enter that sends a form. Typing is none,
and neither is the way to a field by keys, as the slash is to the field of the side bar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MOST_CLICKS = 4


class Clicks:
    """Round a page, which tests see only through ``shown``."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._made: list[str] = []
        page.goto("/")

    @property
    def shown(self) -> Locator:
        """What the page has beside its side bar, to be looked at."""
        return self._page.locator("main")

    def link(self, name: str) -> None:
        """Follow the first link of this name."""
        self._click(self.shown.get_by_role("link", name=name, exact=True).first, f"link {name}")

    def link_of_row(self, row: str, name: str) -> None:
        """Follow the first link of this name in a row of a table that has a text in it."""
        rows = self.shown.get_by_role("row").filter(has_text=row)
        self._click(rows.get_by_role("link", name=name, exact=True).first, f"link {name} of {row}")

    def button(self, name: str) -> None:
        self._click(self.shown.get_by_role("button", name=name), f"button {name}")

    def menu(self, name: str) -> None:
        """Follow a link of the side bar."""
        self._click(self._page.locator("#pages").get_by_role("link", name=name, exact=True), f"menu {name}")

    def find(self, text: str) -> None:
        """Type a name into the field of the side bar, and Enter."""
        self._page.locator("body").press("/")
        self._page.keyboard.type(text)
        self._enter()

    def type(self, label: str, text: str) -> None:
        """Type into the last field of this label, in place of what is there."""
        by_role = self.shown.get_by_role("textbox", name=label, exact=True)  # a label's text has what is in its field
        self.shown.get_by_label(label, exact=True).or_(by_role).last.fill(text)

    def type_and_enter(self, label: str, text: str) -> None:
        """The same, and Enter."""
        self.type(label, text)
        self._enter()

    def _enter(self) -> None:
        self._count("Enter")
        self._page.keyboard.press("Enter")

    def _click(self, what: Locator, name: str) -> None:
        self._count(name)
        what.click()

    def _count(self, name: str) -> None:
        self._made.append(name)
        assert len(self._made) <= MOST_CLICKS, f"{', '.join(self._made)}: these are more than {MOST_CLICKS} clicks"
