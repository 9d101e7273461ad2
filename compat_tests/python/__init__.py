"""Capabilities of the client libraries, tested from Python: every test runs once per client that offers the capability."""
