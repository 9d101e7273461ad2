"""Metrics and health over HTTP, for ``ottla serve --metrics``: needs the extra ``metrics``.

It is imported only when it is used, so that it costs other brokers neither time nor memory.
"""
