"""Ottla's console: web pages of what ``view`` knows (extra ``console``).

It changes nothing. Imported only where it is asked for, so that it costs other brokers neither time nor memory.
"""
