"""The encoder and the recurrent memory."""
