"""The grammar of requirements: any text is one bound on one number, or a UsageError of a line or two."""

import math
from functools import partial

from fuzz.promises import check_message
from headeval.errors import UsageError
from headeval.evaluation import METRICS
from headeval.multiclass import CLASS_METRICS
from headeval.requirement_parsing import Requirement, parse_requirement
from headeval.requirement_scope import EVERY, of_categories, of_classifier

# fmt: off
WORDS = (
    *(name.encode() for name in (*METRICS, *CLASS_METRICS)), b".lower", b".upper", b".diff", b".diff.lower", b">=",
    b"<=", b">", b"<", b"=", b"==", b"!=", b":", b"*:", b"hate:", b" ", b"\t", b"\n", b"0.5", b"-0.005", b"1e-3",
    b"5%", b"1e999", b"nan", b"inf", b"1_0", b"0x1", b".", b"+", b"-", b"safe:", b"a:b:", b"\x1b[31m", b"\xff",
    "é".encode(), "٣".encode(), "\u202e".encode(), b"tpr", b"AUC",
)
# fmt: on
_NAMES = ("safe", "a:b", "hate", "x>=y", "é")
_OPERATORS = (">=", "<=", ">", "<")


def seeds() -> list[bytes]:
    """Return a byte for the circumstances and a requirement."""
    texts = (
        *("auc>=0.95", "recall.lower > .8", "auc.diff.lower>=-0.005", "fpr<=1e-3", "n>=100", "tpr>=0.9", "auc>=5%"),
        *("hate:recall>=0.8", "*:auc>=0.8", "a:b:precision.upper<0.9", "x>=y:auc>=0.5", "macro_f1>=0.5", "auc=0.9"),
        "ap>=0.1234567890123",
    )
    return [bytes([circumstances]) + text.encode() for text in texts for circumstances in (0, 2, 6)]


def check(data: bytes) -> None:
    """Parse the text and hold what is read against its parts; write it and read it again; ask it of whom it names."""
    circumstances, text = data[0] if data else 0, data[1:].decode("utf-8", "surrogateescape")
    options = {
        "each": bool(circumstances & 1),
        "baseline": bool(circumstances & 2),
        "of_parts": bool(circumstances & 4),
    }
    try:
        requirement = parse_requirement(text, **options)
    except UsageError as error:
        check_message(str(error))
        return
    _check_meaning(requirement, text, of_parts=options["of_parts"])
    written = str(requirement)
    assert parse_requirement(written, **options) == requirement, f"{written!r} is read as something else"
    _check_scope(requirement, each=options["each"])


def _check_meaning(requirement: Requirement, text: str, *, of_parts: bool) -> None:
    of, colon, asked = text.rpartition(":") if of_parts else ("", "", text)
    operator = next(sign for sign in _OPERATORS if sign in asked)
    name, number = asked.split(operator)
    suffix = (
        f"{'.diff' if requirement.difference else ''}{'' if requirement.part == 'value' else f'.{requirement.part}'}"
    )
    assert requirement.of == of.strip()
    assert bool(requirement.of) == bool(colon)
    assert requirement.comparison == operator
    assert f"{requirement.metric}{suffix}" == name.strip()
    assert requirement.metric in METRICS or (requirement.metric in CLASS_METRICS and of_parts and not of)
    assert math.isfinite(requirement.bound)
    assert number.strip().isascii()
    assert requirement.bound.hex() == float(number.strip()).hex()


def _check_scope(requirement: Requirement, *, each: bool) -> None:
    """What it asks of categories, of classes and of two classes: of named ones alone, or a message."""
    asked, of_each = ([], [requirement]) if each else ([requirement], [])
    for meant in (
        partial(of_categories, [requirement], _NAMES, each=each),
        partial(of_classifier, asked, of_each, _NAMES),
        partial(of_classifier, asked, of_each, None),
    ):
        try:
            found = meant()
        except UsageError as error:
            check_message(str(error))
            continue
        if meant.func is of_categories or not each:
            assert len(found) == (len(_NAMES) if requirement.of == EVERY else 1)
        for one in found:
            assert one.of in {"", *_NAMES}
            assert not one.of or parse_requirement(str(one), each=each, of_parts=True) == one
