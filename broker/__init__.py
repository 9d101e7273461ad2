"""The broker process: listeners, connections, dispatch, configuration, and the start and stop order of its parts."""
