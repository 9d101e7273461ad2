"""Names, options and help of the subcommands that talk to a cluster; ``cli.tools`` implements them."""
