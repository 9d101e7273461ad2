"""The ``ottla`` command: a thin shell over the layers below, each subcommand imported when it is called."""

from __future__ import annotations


def main() -> None:
    """Run the command line; never returns."""
    from .app import app

    app()
