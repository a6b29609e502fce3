"""From measurements to tables and charts."""
