"""Test support for programs that use Kafka: ``Broker`` with faults, recorded requests and a clock, and a pytest plugin."""
