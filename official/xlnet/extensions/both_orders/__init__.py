"""GPT's input of similarity tasks: a pair of texts is read in both orders."""
