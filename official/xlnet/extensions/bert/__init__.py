"""BERT's and GPT's networks, to compare with: learned absolute positions, one stream, no memory."""
