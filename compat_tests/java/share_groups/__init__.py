"""Java's share consumer and Kafka's tools for share groups, on a broker of their own."""
