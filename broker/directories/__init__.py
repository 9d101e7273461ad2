"""Log directories of a node that is not running: formatted, taken over, migrated, recovered and checked."""
