"""Networks of BERT, GPT and GPT-2: learned absolute positions, one stream, no memory."""
