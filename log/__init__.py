"""The log of a partition on disk, in Apache Kafka's file formats, and its recovery after a crash.

This is the page of the format and of the crash story. Each module says its own part in full.

The log directory
-----------------

::

    .lock                                locked while a broker uses the folder
    .kafka_cleanshutdown                 there only between a clean stop and the next start
    meta.properties                      whose folder it is: broker id, cluster id
    recovery-point-offset-checkpoint     per log: everything below is on stable storage
    log-start-offset-checkpoint          per log: where it starts, unless that is the beginning of a segment
    replication-offset-checkpoint        per log: its high watermark
    cleaner-offset-checkpoint            per log that was compacted: everything below is clean
    orders-0/                            topic "orders", partition 0
        partition.metadata                   the topic's id
        leader-epoch-checkpoint              which leader epoch wrote from which offset on
        00000000000000000000.log             a segment: the batches from offset 0 on
        00000000000000000000.index           its offset index
        00000000000000000000.timeindex       its time index
        00000000000000041310.log             the next segment, which begins with offset 41310
        00000000000000041310.index
        00000000000000041310.timeindex
        00000000000000041310.snapshot        the producers' state before offset 41310
    orders-1.0a1b…-delete/               a deleted partition, until file.delete.delay.ms is over

A partition that was never written has no folder, unless there are several log directories. All numbers in binary files are
big-endian.

=========================  =======================================================================  ================
file                       content                                                                  module
=========================  =======================================================================  ================
``.log``                   record batches of format v2, end to end                                  ``wire.records``
``.index``                 int32 relative offset, int32 position; ascending                         ``offset_index``
``.timeindex``             int64 timestamp, int32 relative offset; ascending                        ``time_index``
``.txnindex``              int16 version and four int64 per aborted transaction                     ``transaction_index``
``.snapshot``              version, CRC-32C, and 46 bytes per producer                              ``producer_snapshot``
checkpoints, metadata      small text files                                                         ``checkpoints``
=========================  =======================================================================  ================

A segment's name is the first offset it may hold. An entry of ``.index`` is the *last* offset of a batch and the position
where that batch begins; one is added for the first batch after every ``index.interval.bytes``. ``.timeindex`` gets its
entry at the same time, if the largest timestamp has grown, and a closing one when the segment is left; its offset is the
last one of the batch that has the timestamp. A *relative* offset counts from the segment's first.

Writing
-------

An append is one plain function: check the batch, check the producer's sequence, stamp offset and leader epoch, roll if
the segment is full, one ``pwrite``, and only then the state in memory: indexes, end offset, leader epoch, producer. If the
write fails or is short, the file is cut back to its old end, nothing in memory has changed, and the folder goes offline.

What is in memory only: the indexes of the active segment, leader epochs since the last flush, the producers since the
last snapshot. All of it can be rebuilt from the batches. It is written when a segment rolls, at a flush, and at the stop.

A roll writes the indexes of the old segment and a snapshot named as the new one; a flush follows in the background. A
flush forces to stable storage, in this order: batches, indexes and snapshots of inactive segments, leader epochs, names.
Then the recovery point moves, in memory; its checkpoint follows within ``log.flush.offset.checkpoint.interval.ms``.

The rules that carry recovery
-----------------------------

1. Below the recovery point everything is durable, and everything that recovery would rebuild is, too. Where a segment
   ends exactly at the recovery point, its indexes are synced before the next segment is created.
2. The recovery point in the checkpoint is never above the one in memory. Before anything below it is changed (a
   truncation), it is lowered, in the file first. The same holds for the log start offset.
3. Before a new log gets files, the checkpoints have no entry of a deleted log of the same name.
4. The clean mark is written last of all, after every log is flushed and the checkpoints are written, and never after an
   I/O error. It is removed before the first log is opened, so that a crash while loading counts as a crash.
5. A small file is replaced by writing ``<name>.tmp``, syncing it, and renaming it.

Starting
--------

With the clean mark: files are what they were. The end of the active segment is found by its index and the headers behind
the last entry, the producers' state is the snapshot that the stop left. If index and headers do not fit together, the mark
was wrong, and that log is recovered.

Without it: each log is scanned from the beginning of the segment that holds its recovery point. Every batch there is
checked by its CRC, its offsets, its length; indexes, leader epochs and producers (from the newest snapshot below) are
built on the way. At the first thing that is no valid batch (a torn write, zeros, another's garbage) the segment is cut,
durably, and segments behind it are removed: the log ends there. Segments below are believed; a missing or damaged index
is rebuilt from the batches when it is needed, and an entry that is used is checked against the batch it names.

``.deleted``, ``.cleaned`` and ``.tmp`` files that the last run left behind are removed; a complete ``.swap`` file takes the
place of the segments it stands for. A log ends, too, where a segment ends before the next one begins, unless it was
compacted once: compaction leaves such gaps. A log in message format 0 or 1 is refused, not cut.

Compacting
----------

With ``cleanup.policy=compact`` a background task rewrites the inactive segments, so that of each key the last record is
left, at its offset (``log_cleaner``; the rules for a batch are in ``batch_filter``). A new segment is written as
``.cleaned`` and synced, then renamed to ``.swap``, the old ones to ``.deleted``, and the new one to its plain name
(``segment_swap``). A crash leaves the records as they were before or as they are after it, one segment at a time.

Reading
-------

A read finds the segment by bisection, the position by the index and a few headers (or by remembering where a sequential
reader will go on), and gives a *slice*: whole batches of one segment, not their bytes. A slice pins its segment: deleted
or not, its descriptor stays open until the last slice is released.
"""
