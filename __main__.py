"""``python -m ottla`` is the ``ottla`` command."""

from .cli import main

main()
