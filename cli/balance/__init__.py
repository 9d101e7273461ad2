"""``ottla cluster balance``: the requests for a plan, its output for people and programs, and its execution.

How a plan is found is in ``ottla.balance``; here are the requests to brokers.
"""
