"""Checks of a log directory that no broker uses: its defects, and the effects that a broker's start would have.

``directory`` begins with the log directory and its checkpoints, ``partition`` goes through the folder of one log.
``segments`` checks the indexes against the batches, ``producers`` the producer snapshots and the indexes of aborted transactions.
``start`` predicts what a start makes of the segments, by the rules of ``recovery``; nothing here writes.
"""
