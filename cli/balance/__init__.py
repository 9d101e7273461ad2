"""``ottla cluster balance``: what is looked up for a plan, the plan for people and programs, and its steps carried out.

How a plan is found is in ``ottla.balance``; here are the requests to brokers.
"""
