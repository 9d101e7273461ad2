"""The cluster of a quorum (KRaft): its metadata as the records of a log, and this broker's life in it.

Records become deltas of the cluster's image by replay alone (``replay``): of the log's batches, of its transactions and of its
snapshots. What they are on the wire and on disk, ``wire`` declares.
"""
