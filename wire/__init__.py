"""Kafka's wire protocol: encoding and decoding of messages and record batches, without I/O, clock or threads.

* ``schema`` has what messages are declared with, ``messages/`` the declarations, one file per API; ``registry`` finds them.
* ``codec`` decodes and encodes; ``decoder_compiler`` and ``encoder_compiler`` make the function for one version.
* ``headers`` has the headers of requests and responses, ``coordinator_records`` the records of the coordinators' topics.
* ``records`` has the record batches of format v2, ``compression`` their codecs.
* ``python -m ottla.wire`` shows messages and layouts.
"""
