"""From raw text to a stream of batches: corpus, subword, shards, batches, prepare."""
