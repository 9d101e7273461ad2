"""Authentication of clients and of this broker at others: TLS, SASL and its mechanisms, OAUTHBEARER, the authorizer."""
