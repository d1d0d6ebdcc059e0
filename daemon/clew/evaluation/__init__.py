"""How well compaction keeps what matters: transcripts in, the real compactor over them, the contract scored against a key. And how much
recall brings back of what answers a question."""
