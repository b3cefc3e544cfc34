"""Translation: beam search, text to text, and the score of what came out."""
