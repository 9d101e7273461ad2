"""Stock clients as share consumers, and Kafka's tools for share groups, on a broker of their own."""
