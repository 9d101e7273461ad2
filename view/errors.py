"""What goes wrong when something is asked for that is not there."""


class NotFoundError(Exception):
    """There is no such topic, partition or group; ``str()`` is a sentence."""
