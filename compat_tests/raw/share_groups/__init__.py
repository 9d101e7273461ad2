"""Wire tests of share groups of KIP-932, on a broker of their own."""
