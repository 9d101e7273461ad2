"""The version of this build of Ottla, and the commit that is checked out or was installed."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

UNKNOWN = "unknown"
"""Kafka's word where the commit is not known."""


_PACKAGE = Path(__file__).resolve().parent.parent


def version() -> str:
    """The version of the package. It is read from ``sys.modules``, because no layer may import the package, which imports all."""
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def commit(package: Path = _PACKAGE) -> str:
    """The commit of the checkout in ``package``, or the one that pip installed (PEP 610); otherwise ``UNKNOWN``."""
    return _checked_out(package / ".git") or _installed() or UNKNOWN


def _checked_out(git: Path) -> str:
    try:
        if git.is_file():  # of a work tree beside the repository
            git = Path(git.read_text().partition("gitdir: ")[2].strip())
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        shared = git / "commondir"
        folder = git / shared.read_text().strip() if shared.exists() else git
        if (folder / name).exists():
            return (folder / name).read_text().strip()
        packed = (folder / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except OSError:
        return ""


def _installed() -> str:
    return str(direct_url().get("vcs_info", {}).get("commit_id", ""))


def direct_url() -> dict[str, Any]:
    """What pip wrote down of the place it installed Ottla from (PEP 610); empty if it has not, as for what came from an index."""
    # The metadata of a build may lie in the checkout, before the installed one on the path of what is started there.
    notes = (each.read_text("direct_url.json") for each in importlib.metadata.distributions(name="ottla"))
    found: dict[str, Any] = next((json.loads(note) for note in notes if note), {})
    return found
