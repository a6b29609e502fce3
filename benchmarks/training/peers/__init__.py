"""Other implementations of XLNet on the same work, in their best modes."""
