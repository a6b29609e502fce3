"""Whole journeys by the thousand: right input, drawn at random, through the verbs of `xlnet`.

A journey is a description in plain JSON, a function of its number (`draws.drawing.draw`): a
corpus, a vocabulary, a configuration, a source, task files, and the verbs to run, one of them
interrupted. `journey.travel` runs it in this process and checks what must hold whatever was drawn.

    make journeys N=1000                        # or python -m tests.property.journeys --n=1000
    python -m tests.property.journeys --only=17 # repeats one
"""
