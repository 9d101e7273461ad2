"""Capabilities of the Python clients: every test runs once per client that offers the capability."""
