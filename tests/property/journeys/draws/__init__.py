"""What a journey is made of, drawn and written: each a function of its random generator."""
