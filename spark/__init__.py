"""Spark on Kafka topics: a session that holds the connector, and jobs to run with it.

Nothing here is needed to use Spark with a broker: Spark's own ``kafka`` format works unchanged. Importing these modules
does not import pyspark (the extra ``spark``), building a session does.
"""
