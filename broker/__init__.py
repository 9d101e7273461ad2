"""The process: listeners, connections, dispatch, configuration, and the order in which a broker's parts start and stop."""
