"""Clients that must say who they are: a broker with every listener and mechanism, and each client at each of them."""
