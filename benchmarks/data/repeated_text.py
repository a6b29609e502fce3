"""Repetition of a text to a given size."""


def write_repeated(text_file: str, path: str, num_bytes: int) -> None:
    """Writes a text repeatedly, separated by blank lines, up to at least `num_bytes` bytes.

    Args:
      text_file: file to repeat.
      path: file to write.
      num_bytes: minimum size.
    """
    with open(text_file, "rb") as file:
        text = file.read().rstrip() + b"\n\n"
    with open(path, "wb") as file:
        for _ in range(-(-num_bytes // len(text))):
            file.write(text)
