"""The functions of `official.xlnet`: a trained model by its path, texts as plain strings."""
