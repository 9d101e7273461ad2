"""Rules about a cluster's metadata, as pure functions: what may be named how, where replicas go, who leads."""
