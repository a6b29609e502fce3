"""The Universal Transformer's depth: one block for all layers, also with halting by token."""
