"""Rules for cluster metadata, as pure functions: topic names, replica placement and leader election."""
