"""Multiple choice: RACE, SWAG."""
