"""The subcommands that talk to a cluster: their names, options and help. What they do is in ``cli.tools``."""
