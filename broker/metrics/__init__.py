"""Metrics and health over HTTP, for ``ottla serve --metrics``: needs the extra ``metrics``.

Imported only when a broker is asked for it, so that it costs the others neither time nor memory.
"""
