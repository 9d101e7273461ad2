"""Ottla's console: web pages of what ``view`` knows (extra ``console``).

Pages show; ``actions`` change, by requests to Kafka that a visitor has the right to make. The console is imported only where it
is switched on, so that it costs other brokers neither time nor memory.
"""
