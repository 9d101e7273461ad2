"""Wire tests of consumer groups of KIP-848, on a broker of their own."""
