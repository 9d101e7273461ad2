"""Listeners of a node: their addresses, the connections they accept, and the way of a request from bytes to a response."""
