"""Keras layers of XLNet, and the equations that they compute."""
