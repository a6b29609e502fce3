"""Multiple choice: RACE, SWAG."""

DATASETS = {name: {"name": "multiple_choice", "num_choices": 4} for name in ("race", "swag")}
INPUTS = ("passage", "question", "choices")
