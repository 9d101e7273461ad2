"""Tests of authentication: a broker with every listener and mechanism, and each client at each of them."""
