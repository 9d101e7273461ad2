"""The quorum's consensus (KRaft: KIP-595, KIP-853): what its nodes keep on disk beside the metadata log, and who votes."""
