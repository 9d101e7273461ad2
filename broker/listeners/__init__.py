"""The listeners of a node: addresses, connections, and request handling from bytes to a response."""
