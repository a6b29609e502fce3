"""Services: the signatures of an exported model, one module for each task."""
