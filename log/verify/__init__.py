"""Checks of a data folder that no broker is using: what is wrong with it, and what a start would do about it.

``folder`` begins with the folder and its checkpoints, ``partition`` goes through the folder of one log, ``segments`` holds
batches and indexes against each other, ``producers`` the producer snapshots and the indexes of aborted transactions.
What a start would do follows ``recovery``; nothing here writes.
"""
