"""Metrics and health over HTTP, for ``ottla serve --metrics``: needs ``pip install 'ottla[metrics]'``.

Imported only when a broker is asked for it, so that it costs the others neither time nor memory.
"""
