"""What tests of other people's programs use: ``Broker`` with faults, recorded requests and a clock, and the pytest plugin."""
