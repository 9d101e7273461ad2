"""Kafka's wire protocol: bytes to messages and record batches, and back. No I/O, no clock, no threads.

* ``schema`` is how a message is declared, ``messages/`` holds the declarations, one file per API, ``registry`` finds them.
* ``codec`` decodes and encodes; ``decoder_compiler`` and ``encoder_compiler`` make the function for one version.
* ``headers`` is what stands before every body, ``coordinator_records`` what the coordinators write to their topics.
* ``records`` is the batch format v2, ``compression`` its codecs.
* ``python -m ottla.wire`` shows messages and layouts.
"""
