"""One driver per client library: the same few operations, each done through the client's own public API."""
