"""A text repeated to the size that a benchmark wants."""


def write_repeated(text_file: str, path: str, num_bytes: int) -> None:
    """Writes a text again and again, with a blank line between, until there are enough bytes."""
    with open(text_file, "rb") as file:
        text = file.read().rstrip() + b"\n\n"
    with open(path, "wb") as file:
        for _ in range(-(-num_bytes // len(text))):
            file.write(text)
