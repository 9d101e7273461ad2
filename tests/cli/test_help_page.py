"""The reference page of the commands: the committed one is the one the source gives, and it says what ``--help`` prints."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import typer
from click.testing import CliRunner

from ottla.cli.app import app
from ottla.cli.help_page import Declared, commands, page

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "command-reference.md"
COMMAND = typer.main.get_command(app)


@functools.cache
def written() -> str:
    return page()


def squeezed(text: str) -> str:
    """The text without what a terminal's width, or Markdown, makes of it."""
    return re.sub(r"[\s`\\'*]+", "", text.replace("&lt;", "<"))


def section(declared: Declared) -> str:
    """What the page says of one command."""
    heading = rf"^#+ ottla {' '.join(declared.words)}\n"
    found = re.search(rf"{heading}(.*?)(?=^##|\Z)", written(), re.MULTILINE | re.DOTALL)
    assert found
    return re.sub(r"^```(sh)?$", "", found[1], flags=re.MULTILINE)


def test_committed_page_is_up_to_date() -> None:
    assert COMMITTED.read_text() == written(), "run `make docs`"


# compat hands all that follows it to pytest, and prints pytest's help.
@pytest.mark.parametrize(
    "declared",
    [declared for declared in commands() if declared.command.add_help_option],
    ids=lambda declared: " ".join(declared.words),
)
def test_every_command_has_help_and_the_page_says_the_same(declared: Declared) -> None:
    asked = CliRunner().invoke(COMMAND, [*declared.words, "--help"], prog_name="ottla")
    assert asked.exit_code == 0
    printed = asked.output.lstrip()
    assert printed.startswith("Usage:")
    if not declared.is_group:
        assert re.search(rf"^ +(.*\| )?ottla {' '.join(declared.words)}", printed, re.MULTILINE), "no example"
    for line in section(declared).splitlines():
        option, _, meaning = line.partition(": ") if line.startswith("- ") else ("", "", line)
        for name in re.findall(r"`(--?[a-z-]+)", option):
            assert squeezed(name) in squeezed(printed), f"{name} is not in the help"
        meaning = re.sub(r" (?:\*Required|Default: |Environment: ).*", "", meaning)
        assert squeezed(meaning) in squeezed(printed), f"the help doesn't say: {meaning}"
