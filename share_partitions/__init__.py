"""Share partitions: partitions as share groups read them, at their leaders (KIP-932).

A *share partition* is a partition of a topic as one share group reads it. Its leader delivers each record to one member at a
time, and has the share coordinators (``share_coordinator``) keep what became of it.

===================  ===============================================================================================
``delivery``         runs of records in one state, and the batches they were acquired in: immutable values
``share_partition``  the state of one share partition, changed by plain functions without I/O: load, release, expire, complete
``acquisition``      what a fetch takes of it, ``acknowledgement`` what a member says of that; without I/O, too
``led_partition``    a state with the writes that store it, one after the other
``manager``          all of a broker: loaded when they are wanted, dropped with the leadership; the ends of locks
``share_fetch``      one fetch of several share partitions, and its wait; ``found_batches`` is what it reads
``sessions``         which share partitions a member fetches, and the order of its requests
``group_terms``      what the configuration of a group says
===================  ===============================================================================================

What becomes of a record
------------------------

::

                     acquire                  accept
      available  --------------->  acquired  -------->  acknowledged
          ^                          |   |    reject, gap
          '--------------------------'   '----------->  archived
             release, end of the lock
             or of the session                          (released at the limit of deliveries: archived)

Invariants
----------

1. What a member was told to be acknowledged is not delivered again: it is told when the write is done.
2. A record that nobody has acknowledged, or rejected, is delivered until it was as often as it may be. A write that fails gives
   its records back to their member, and a new leader delivers all that is not stored.
3. A record is one member's at a time, as far as one leader goes. Another leader knows nothing of records that are acquired.
4. Writes are stored in their order. The epochs of the store keep those of an earlier leader out.

``tests/simulation/share`` checks them for each offset, with leaders that move and writes that fail.
"""
