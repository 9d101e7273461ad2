"""Spark on Kafka topics: a session with the connector, and jobs to run with it.

This package is not needed to use Spark with a broker: Spark's own ``kafka`` format works unchanged. Importing these modules
does not import pyspark (the extra ``spark``); building a session does.
"""
