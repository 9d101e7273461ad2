"""The error for a topic, partition or group that does not exist."""


class NotFoundError(Exception):
    """There is no such topic, partition or group; ``str()`` is a sentence."""
