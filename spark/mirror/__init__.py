"""The mirror job: topics of one cluster copied to another, each record once, and consumer groups' offsets translated.

A copy has the record's key, value, headers, timestamp and partition. Spark's own Kafka sink would give copies the current
time and write some twice, because it has no transactions. So the records are written by confluent-kafka in Spark's
tasks: its transactions outlive a broker's restart, and it comes compiled.

One offset makes it exactly once. Records are written in transactions, and each transaction also commits the position to the
job's own group on the target cluster, ``ottla-mirror-`` and the source's cluster id: the group's offset is the end of
the copy, and its metadata says which records of the source the copy has (``offsets``). A task fences its predecessor of the
same transactional id, reads the offset, and omits the records that are there. So a repeated task, a repeated micro-batch, and
even a job that lost its checkpoint write nothing twice. This needs no topic of its own, and the same metadata translates the
offsets of consumer groups.

``job`` runs it, ``topics`` keeps the target's topics like the source's, ``writer`` is the work of tasks, ``groups`` translates
offsets. Executors need this package.
"""
