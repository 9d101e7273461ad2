"""One driver per Python client: the same few operations, each done through the client's own public API."""
