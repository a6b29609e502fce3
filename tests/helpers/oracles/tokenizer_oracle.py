"""What the tokenizer tests compare with: a vocabulary, texts, and the rules read word by word."""

import random
import unicodedata
from pathlib import Path
from pydoc_data.topics import topics

import sentencepiece

SHARED = Path(__file__).parents[4] / "shared" / "data"
SPECIAL_TEXT = ("<sep>", "<cls>", "<mask>", "<pad>", "<unk>", "<s>", "</s>", "<eod>", "<eop>")


def train_vocabulary(path: str) -> None:
    """Trains a small vocabulary, with the settings of the published one, on Python's own manual."""
    draw = random.Random(0)
    numbers = [
        f"on page {draw.randint(1, 99)}, {draw.randint(1, 99)},{draw.randint(100, 999)} of "
        f"{draw.randint(1, 9)},{draw.randint(0, 9)}, and 3, or 4, of ٣٤, ²,"
        for _ in range(3000)
    ]
    languages = [
        "Ein Käse für naïve Señores in Łódź",
        "ΟΔΥΣΣΕΥΣ οδυσσευς",
        "Привет мир",
        "한국어 漢字",
    ]
    lines = "\n".join(topics.values()).splitlines() + numbers + languages * 100
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for line in lines if line.strip()),
        model_prefix=path.removesuffix(".model"),
        vocab_size=2000,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
        user_defined_symbols=["<eop>", ".", "(", ")", '"', "-", "–", "£", "€"],
        num_threads=1,
        minloglevel=2,
    )


def release_clean(text: str, lowercase: bool, keep_accents: bool) -> str:
    """`preprocess_text` of the XLNet release."""
    text = " ".join(text.strip().split())
    text = text.replace("``", '"').replace("''", '"')
    if not keep_accents:
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c))
    return text.lower() if lowercase else text


def release_encode(
    processor: sentencepiece.SentencePieceProcessor, text: str, lowercase: bool, keep_accents: bool
) -> list[int]:
    """`encode_ids` of the XLNet release, piece by piece."""
    pieces = []
    for piece in processor.encode(release_clean(text, lowercase, keep_accents), return_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = processor.encode(piece[:-1].replace("▁", ""), return_type=str)
            if piece[0] != "▁" and parts[0][0] == "▁":
                if len(parts[0]) == 1:
                    parts = parts[1:]
                else:
                    parts[0] = parts[0][1:]
            pieces += [*parts, ","]
        else:
            pieces.append(piece)
    return [processor.piece_to_id(piece) for piece in pieces]


def real_lines(count: int) -> list[str]:
    """Lines people wrote: the texts next to the checkout where there are some, Python's manual."""
    files = ["pretrain/union.txt", "rte/train.tsv", "sst2/train.tsv", "squad/sample.json"]
    texts = [(SHARED / name).read_text("utf-8") for name in files if (SHARED / name).exists()]
    lines = "\n".join([*texts, *topics.values()]).splitlines()
    lines = list(dict.fromkeys(line for line in lines if line.strip()))
    random.Random(0).shuffle(lines)
    return lines[:count]


def nasty_lines(count: int, seed: int = 0) -> list[str]:
    """Lines that nobody should write: each is a random mixture of what has gone wrong somewhere."""
    draw = random.Random(seed)
    return [_nasty_line(draw) for _ in range(count)]


def _nasty_line(draw: random.Random) -> str:
    length = draw.choice((1, 2, 5, 11)) if draw.random() < 0.98 else 300
    glue = draw.choice(("", "", " ", "  ", "\t", "\u3000", "\n "))
    return glue.join(draw.choice(_MAKERS)(draw) for _ in range(length))


def _span(*ranges: tuple[int, int], longest: int = 6):
    def make(draw: random.Random) -> str:
        first, last = draw.choice(ranges)
        return "".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, longest)))

    return make


def _one_of(*choices: str):
    return lambda draw: draw.choice(choices)


def _number(draw: random.Random) -> str:
    digits = draw.choice(
        ("0123456789", "0123456789", "٠١٢٣٤٥٦٧٨٩", "²³¹①½Ⅷ", "०१२३४५६७८९", "１２３")
    )
    parts = [
        "".join(draw.choice(digits) for _ in range(draw.randint(1, 3)))
        for _ in range(draw.randint(1, 4))
    ]
    return draw.choice(("", "$", "-", "▁", " ")) + draw.choice(",,，.").join(parts) + ","


_MAKERS = (
    _number,
    _number,
    _one_of("the", "in", "Python", "statement", "don't", "a,", "is", "Object", "value's", "x_1"),
    _one_of("``", "''", "`", "'", "```", "'''", '"', "`'", "“", "”", "’", "´", "｀", "＇＇"),
    _one_of("🙂", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "\U0001f468\u200d\U0001f4bb", "🏳️‍🌈"),
    _one_of("é", "e\u0301", "ﬁ", "ﬃ", "ſ", "ẞ", "İ", "ı", "ǅ", "Å", "한", "각", "ｶﾞ", "㎐", "℻"),
    _one_of("ΣΑΣ", "ΟΔΟΣ", "Σ", "ΑΣ'", "Α\u0301Σ\u0301", "ΣΣ", "aΣ.b", "ς"),
    _one_of(" ", "  ", "\t", "\r\n", "\x0b", "\x1c", "\x1f", "\x85", "\xa0", "\u2028", "\u200b"),
    _one_of("\ufeff", "\ufffd", "\u00ad", "\u2060", "\u200e", "\u202e", "\ufff9", "▁", "▁▁ ▁"),
    _one_of(".", ",", "(", ")", "-", "–", "£", "€", "<", ">", "\\", "/", "@", "#", "…", "‥", "€5,"),
    _span((0x0, 0x1F), (0x7F, 0x9F), longest=3),
    _span((0x300, 0x36F), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0x64B, 0x65F), longest=9),
    _span((0x20, 0x7E), (0x41, 0x5A), (0x61, 0x7A), longest=12),
    _span((0xA0, 0x24F), (0x370, 0x52F), (0x1E00, 0x1FFF)),
    _span((0x590, 0x6FF), (0xFB1D, 0xFDFF)),
    _span((0x900, 0x109F), (0xE00, 0xEFF)),
    _span((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1100, 0x11FF), (0xF900, 0xFAFF)),
    _span((0x2000, 0x2BFF), (0xFE00, 0xFE0F), (0xFF00, 0xFFEF)),
    _span((0x10000, 0x1F9FF), (0x20000, 0x2FA1D), (0xE0000, 0xE01EF)),
    _span((0x1, 0xD7FF), (0xE000, 0x10FFFF), longest=3),
    lambda draw: (
        draw.choice(("a", "Ab", "0", "9,", "é", "漢", "\u0301", "'")) * draw.randint(1, 400)
    ),
)
