"""What an exported model answers, one service a task."""
