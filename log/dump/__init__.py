"""Log files as text, line by line as Apache Kafka 4.3's ``kafka-dump-log`` prints them.

``files`` goes through the files named on a command line; ``batches`` prints segments, ``indexes`` the files beside them,
``decoders`` makes text of keys and values. Nothing is written, and a broker may be using the files meanwhile.
"""
