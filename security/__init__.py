"""Authentication, authorization, quotas and TLS: rules without I/O, on the bytes, texts and numbers passed to them."""
