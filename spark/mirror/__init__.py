"""The mirror job: topics of one cluster copied to another, each record once, and consumer groups' offsets translated.

A copy has the record's key, value, headers, timestamp and partition. Spark's own Kafka sink would stamp copies with the
present and write some twice, because it has no transactions. So the records are written by confluent-kafka in Spark's
tasks: its transactions outlive a broker's restart, and it comes compiled.

What makes it exactly once is one offset. Records go in transactions, and each transaction also commits to the job's own
group on the target cluster, ``ottla-mirror-`` and the source's cluster id, how far it got: the group's offset is the end of
the copy, and the metadata beside it says which records of the source that holds (``offsets``). A task reads it before it
writes, with its predecessor of the same transactional id fenced off, and leaves out what is there. So a repeated task, a
repeated micro-batch, and even a job that lost its checkpoint write nothing twice. No topic is needed for it, and the same
metadata translates consumer groups' offsets.

``job`` runs it, ``topics`` keeps the target's topics like the source's, ``writer`` is what tasks do, ``groups`` moves
offsets. Executors need this package.
"""
