"""For the tests of programs that use Kafka: ``Broker`` with faults, recorded requests and a clock, and the pytest plugin."""
