"""Ottla's console: pages to look at in a browser, of what ``view`` knows. Needs the extra ``console``.

It changes nothing. Imported only where it is asked for, so that it costs other brokers neither time nor memory.
"""
