"""The ``ottla`` command: a thin shell over the layers below, each subcommand imported when it is called."""

from __future__ import annotations

import sys

from . import plain_serve


def main() -> None:
    """Run the command line; never returns."""
    options = plain_serve.read(sys.argv[1:])
    if options is not None:
        plain_serve.run(**options)
    from .app import app

    app()
