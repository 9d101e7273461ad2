"""Tools for replica placement and leadership: reassignments, drains, elections, log directories."""
