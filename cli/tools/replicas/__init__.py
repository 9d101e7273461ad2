"""Tools for where replicas are and who leads: reassignments, drains, elections, log directories."""
