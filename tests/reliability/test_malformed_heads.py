"""Whatever the bytes of a head are, it is read as they say or refused with exit 4, soon and with little memory."""

import csv
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headeval.certifying.claim_record import Claim, read_claim
from headeval.head_history import SeenCounter
from reliability.independent_heads import PATTERNS, Plain, changes_at, flipped, plain_head, says
from reliability.limited_children import Case, Outcome, outcomes

HEADS = Path(__file__).parents[1] / "files" / "heads" / "valid"
MB = 2**20
MEMORY = 200 * MB  # of address space, beyond what a process takes that has imported headeval and read nothing
SECONDS = 1.0  # of the processor, from the command line to the exit code
TOLERANCE = 1e-12  # a few products of numbers near one, each off by 1e-16 at most

BINARY: dict[str, Any] = {
    "embedding_model": "m-1",
    "dim": 2,
    "classes": ["safe", "unsäfe"],
    "W": [[0, 0.0], [1.25, -2e-1]],
    "b": [0.0, -1.5],
    "threshold": 0.5,
    "metrics": {"n": [1, None, {"auc": 0.97, "q": "\u0000"}]},
}
SOFTMAX = BINARY | {"classes": ["x", "y", "z"], "W": [[0.5, -1], [3e0, 0.25], [-1, 2]], "b": [0, 1e-3, -0.125]}
SOFTMAX["metrics"] = {}
ROWS = [(3.0, 4.0), (-0.5, 0.125), (0.0, 0.0), (1e-3, -7.0)]


def encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ": ")).encode()


SMALL = {"binary": encoded(BINARY), "softmax": encoded(SOFTMAX)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small table to be scored."""
    (tmp_path / "rows.csv").write_text("id,e0,e1\n" + "".join(f"r{i},{x},{y}\n" for i, (x, y) in enumerate(ROWS)))
    return tmp_path


# --- the reader alone: every truncation and every flip


@pytest.mark.parametrize("path", sorted(HEADS.glob("*.json")), ids=lambda path: path.stem)
def test_the_other_reader_takes_the_valid_examples(path: Path) -> None:
    """Else it could not judge the flips."""
    plain = json.loads(path.read_bytes())
    head = plain_head(path.read_bytes())
    assert (head.embedding_model, head.classes) == (plain["embedding_model"], plain["classes"])
    assert (head.W, head.b) == ([[float(w) for w in row] for row in plain["W"]], [float(c) for c in plain["b"]])
    assert (head.threshold, head.metrics) == (plain["threshold"], plain.get("metrics", {}))


@pytest.mark.parametrize("path", sorted((HEADS.parent / "invalid").glob("*.json")), ids=lambda path: path.stem)
def test_the_other_reader_refuses_the_invalid_examples(path: Path) -> None:
    assert says(path.read_bytes()) is None


def read_flips(folder: Path, data: bytes, step: int) -> None:
    """Cut the file off at each place, flip each byte, and compare what is read with what the bytes say."""
    places = range(len(data))
    cases = [Case(("head.json", str(place), str(step)), {"head.json": data} if not place else {}) for place in places]
    accepted = 0
    found = outcomes(cases, folder, memory=MEMORY, function="reliability.independent_heads:tell")
    for place, outcome in enumerate(found):
        assert outcome.ended_well({0}), (place, outcome)
        for content, line in zip(changes_at(data, place, step), outcome.out.splitlines(), strict=True):
            assert json.loads(line) == says(content), content
            accepted += line != "null"
    assert accepted > len(data) / 8  # flips within names and numbers: there is something to compare


@pytest.mark.parametrize("kind", SMALL)
def test_every_truncation_and_flipped_byte_reads_as_its_bytes_say_or_is_refused(kind: str, tmp_path: Path) -> None:
    read_flips(tmp_path, SMALL[kind], step=4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_every_flip_in_every_pattern_reads_as_its_bytes_say_or_is_refused(kind: str, tmp_path: Path) -> None:
    read_flips(tmp_path, SMALL[kind], step=1)


# --- `score`: exit codes, and the scores of what still reads


def written_scores(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def check_scores(head: Plain, table: list[dict[str, str]], prefix: str = "") -> None:
    """Compare what was written with what the bytes of the head say."""
    assert len(table) == len(ROWS)
    for embedding, row in zip(ROWS, table, strict=True):
        prob = head.prob(embedding)
        assert float(row[f"{prefix}logit"]) == pytest.approx(head.logit(embedding), rel=TOLERANCE, abs=TOLERANCE)
        assert float(row[f"{prefix}prob"]) == pytest.approx(prob, rel=TOLERANCE, abs=TOLERANCE)
        if abs(prob - head.threshold) > TOLERANCE:
            assert row[f"{prefix}flagged"].lower() == str(prob > head.threshold).lower()
        if len(head.classes) > 2:
            probabilities = head.probabilities(embedding)
            assert [float(row[f"prob_{name}"]) for name in head.classes] == pytest.approx(probabilities, abs=TOLERANCE)
            assert row["predicted"] == head.classes[probabilities.index(max(probabilities))]


def changed_heads(data: bytes, *, every: bool) -> Iterator[bytes]:
    """Yield each truncation and two of the flips of each byte, or a flip at every fourth."""
    for place in range(len(data)):
        if every:
            yield from changes_at(data, place, step=5)
        elif place % 4 == 0:
            yield flipped(data, place, PATTERNS[place // 4 % len(PATTERNS)])


def score(head: str) -> tuple[str, ...]:
    return ("score", "rows.csv", "--embedding", "e", "--head", head, "-o", "scored.csv", "--force", "--quiet")


def scored_flips(folder: Path, data: bytes, *, every: bool) -> None:
    changed = list(changed_heads(data, every=every))
    cases = (Case(score("head.json"), {"head.json": content}) for content in changed)
    codes = set()
    for content, outcome in zip(changed, outcomes(cases, folder, memory=MEMORY), strict=True):
        expected = says(content)
        assert outcome.ended_well({4 if expected is None else 0}), (content, outcome)
        assert (folder / "scored.csv").exists() == (expected is not None)
        if expected is not None:
            check_scores(Plain(**expected), written_scores(folder / "scored.csv"))
            (folder / "scored.csv").unlink()
        else:
            assert outcome.err.startswith("headeval: head.json: ")
        codes.add(outcome.code)
    assert codes == {0, 4}


@pytest.mark.parametrize("kind", SMALL)
def test_scores_are_those_of_the_bytes_or_there_are_none(kind: str, folder: Path) -> None:
    scored_flips(folder, SMALL[kind], every=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_scores_of_every_flipped_byte_are_those_of_the_bytes_or_there_are_none(kind: str, folder: Path) -> None:
    scored_flips(folder, SMALL[kind], every=True)


def folder_flips(folder: Path, data: bytes, *, every: bool) -> None:
    """Flip the second of two heads: both score, or none does."""
    (folder / "heads").mkdir()
    (folder / "heads" / "a.json").write_bytes(data)
    changed = [*changed_heads(data, every=every), data.replace(b"m-1", b"m-2"), data.replace(b"m-1", b"unspecified")]
    cases = (Case(score("heads"), {"heads/b.json": content}) for content in changed)
    first, codes = plain_head(data), set()
    for content, outcome in zip(changed, outcomes(cases, folder, memory=MEMORY), strict=True):
        expected = says(content)
        alike = expected is not None and expected["embedding_model"] in {first.embedding_model, "unspecified"}
        assert outcome.ended_well({0 if alike else 4}), (content, outcome)
        assert (folder / "scored.csv").exists() == alike
        if expected is not None and alike:
            table = written_scores(folder / "scored.csv")
            check_scores(first, table, "a_")
            check_scores(Plain(**expected), table, "b_")
            (folder / "scored.csv").unlink()
        else:
            assert outcome.err.startswith("headeval: heads/b.json: ")
        codes.add(outcome.code)
    assert codes == {0, 4}


def test_a_folder_with_a_flipped_head_scores_as_its_bytes_say_or_not_at_all(folder: Path) -> None:
    folder_flips(folder, SMALL["binary"], every=False)


@pytest.mark.slow
def test_a_folder_with_any_flipped_byte_of_a_head_scores_as_its_bytes_say_or_not_at_all(folder: Path) -> None:
    folder_flips(folder, SMALL["binary"], every=True)


def test_a_flipped_name_of_a_head_in_a_folder_is_another_category_or_an_error(folder: Path) -> None:
    """The names of the files are the index of the folder."""
    (folder / "heads").mkdir()
    (folder / "heads" / "zz.json").write_bytes(SMALL["binary"])
    name = b"b%C3.json"
    names = [flipped(name, place, pattern) for place in range(len(name)) for pattern in PATTERNS]
    codes = set()
    for content in (one for one in names if b"/" not in one and b"\0" not in one and one not in {b".", b".."}):
        path = Path(str(folder), "heads", content.decode("utf-8", "surrogateescape"))
        path.write_bytes(SMALL["binary"])
        # A child a name would take minutes: what the command line does with an error is tested everywhere else.
        codes.add(code_of_folder(folder / "heads"))
        path.unlink()
    assert codes == {0, 4}


def code_of_folder(folder: Path) -> int:
    from headeval.errors import HeadError
    from headeval.files.head_folder import read_heads

    try:
        heads = read_heads(folder)
    except HeadError as error:
        return error.exit_code
    assert heads["zz"].classes == ("safe", "unsäfe")
    return 0


# --- what programs and people can make of `metrics`


ODD: list[Any] = [None, True, "x", "", -1, 0, -0.5, 1e308, 5e-324, 10**300, [], {}, [1], {"a": 1}, [None], [{}], 2**63]
# A head after fit, calibrate and threshold, with all that is read of it again.
HISTORY: dict[str, Any] = {
    "headeval_version": "0.1.0",
    "fit": {"n": 6, "positives": 2, "data_fingerprint": "6:ab", "distinct_rows": 2, "row_digests": "0" * 24, "l2": 1.0},
    "evaluation_before_calibration": {"how": "out-of-fold", "metrics": {"auc": 0.9}},
    "calibrations": [
        {"method": "platt", "slope": 1.5, "slope_interval": {"lower": 1.0, "upper": 2.0}, "intercept": 0.0}
        | {"row_digests": "0" * 12, "distinct_rows": 1, "n": 4, "threshold_before": 0.5, "threshold_after": 0.5}
    ],
    "threshold": {
        "threshold": 0.5,
        "chosen_by": "certified requirements",
        "goal": "largest recall",
        "confidence": 0.95,
        "requirements": [
            {"requirement": "fpr<=0.9", "metric": "fpr", "comparison": "<=", "bound": 0.9, "n": 3, "errors": 1}
            | {"errors_allowed": 2, "value": 0.3, "interval": {"lower": 0.1, "upper": 0.6, "confidence": 0.95}}
            | {"exact_bound": 0.8, "rule": "exact"}
        ],
        "n": 6,
        "in_sample": "calibrated",
        "benign": {"n": 5, "data_fingerprint": "5:ab"},
    },
}


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def odd_histories() -> Iterator[dict[str, Any]]:
    """Yield HISTORY with each of ODD at each of its places."""
    for path, odd in itertools.product([path for path in places(HISTORY) if path], ODD):
        changed = json.loads(json.dumps(HISTORY))
        *way, last = path
        inner = changed
        for step in way:
            inner = inner[step]
        inner[last] = odd
        yield changed


def test_whatever_the_metrics_of_a_head_hold_is_taken_for_a_history_or_left_alone() -> None:
    """A list where a comparison is written once was a bug of headeval, exit 70."""
    assert isinstance(read_claim(HISTORY), Claim)
    for history in odd_histories():
        assert isinstance(read_claim(history), Claim | None)
        SeenCounter(history)


LABELLED = "label,e0,e1\n" + "".join(f"{i % 3 % 2},{3 + i % 5 + 4 * (i % 3 % 2)},{7 - i % 4}\n" for i in range(40))
JUDGED = BINARY | {"classes": ["0", "1"], "W": [[0, 0], [4, -4]], "b": [0, -1]}  # ranks those rows, not perfectly
READERS = {
    "report": "report labelled.csv --embedding e --head head.json --resamples 0 --card c.md --force --quiet",
    "markdown": "report labelled.csv --embedding e --head head.json --resamples 0 --format markdown --quiet",
    "page": "report labelled.csv --embedding e --head head.json --resamples 0 --html p.html --format json --force",
    "calibrate": "calibrate labelled.csv --embedding e --head head.json -o out.json --force --quiet",
    "threshold": "threshold labelled.csv --embedding e --head head.json --require fpr<=0.9 -o out.json --force --quiet",
    "score": "score labelled.csv --embedding e --head head.json -o out.csv --force --quiet",
}


@pytest.mark.slow
def test_no_command_stumbles_over_odd_metrics(tmp_path: Path) -> None:
    (tmp_path / "labelled.csv").write_text(LABELLED)
    lines = itertools.cycle(line.split() for line in READERS.values())
    histories = list(odd_histories())[::11]
    cases = (Case(next(lines), {"head.json": encoded(JUDGED | {"metrics": history})}) for history in histories)
    for history, outcome in zip(histories, outcomes(cases, tmp_path, memory=2 * MEMORY), strict=True):
        assert outcome.ended_well({0}), (history, outcome)


@pytest.mark.slow
def test_every_command_takes_a_flipped_head_or_refuses_it(tmp_path: Path) -> None:
    """What a head says may also make the labels foreign (3) or a calibration hopeless (5); what is no head is 4."""
    (tmp_path / "labelled.csv").write_text(LABELLED)
    data, lines = encoded(JUDGED | {"metrics": HISTORY}), itertools.cycle(line.split() for line in READERS.values())
    changed = [flipped(data, place, PATTERNS[place % len(PATTERNS)]) for place in range(0, len(data), 11)]
    cases = (Case(next(lines), {"head.json": content}) for content in changed)
    seen = set()
    for content, outcome in zip(changed, outcomes(cases, tmp_path, memory=2 * MEMORY), strict=True):
        assert outcome.ended_well({4} if says(content) is None else {0, 3, 5}), (content, outcome)
        seen.add(outcome.code)
    assert {0, 4} <= seen


# --- hostile heads, one kind after the other


def replaced(**changes: Any) -> bytes:
    return encoded(BINARY | changes)


def with_text(old: str, new: str) -> bytes:
    text = SMALL["binary"].decode()
    assert text.count(old) == 1, old
    return text.replace(old, new).encode()


DEEP, LONG = 100_000, "9" * 5_000
NOT_FINITE = {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity", "1e999": "1e999", "-1e999": "-1e999"}
ANYWHERE = {"W": "1.25", "b": "-1.5", "threshold": '0.5,"metrics"', "metrics": "0.97", "dim": '2,"classes"'}


def hostile() -> Iterator[tuple[str, bytes, str]]:
    """Yield a name, the bytes, and what the error says among others."""
    yield "key twice", with_text('"dim": 2', '"dim": 2,"dim": 2'), "has the key 'dim' twice"
    yield "key twice, the second escaped", with_text('"dim": 2', '"dim": 3,"d\\u0069m": 2'), "has the key 'dim' twice"
    yield "key twice in metrics", with_text('"n": [', '"n": 1,"n": ['), "has the key 'n' twice"
    yield "key twice, deep", with_text('"auc": 0.97', '"auc": 0.9,"auc": 0.97'), "has the key 'auc' twice"
    for (name, number), (place, old) in itertools.product(NOT_FINITE.items(), ANYWHERE.items()):
        first, comma, rest = old.partition(",")
        yield f"{name} in {place}", with_text(f"{old}", f"{number}{comma}{rest}"), "is not a finite number"
        assert first
    for place, old in ANYWHERE.items():
        _, comma, rest = old.partition(",")
        yield f"5,000 digits in {place}", with_text(old, f"{LONG}{comma}{rest}"), "is not a finite number"
        yield f"100,000 arrays in {place}", with_text(old, f"{'[' * DEEP}{']' * DEEP}{comma}{rest}"), "is nested more"
    yield "100,000 arrays", b"[" * DEEP + b"]" * DEEP, "is nested more than 32 levels"
    yield "100,000 open arrays", b"[" * DEEP, "is nested more than 32 levels"
    yield "100,000 objects", b'{"W":' * DEEP + b"1" + b"}" * DEEP, "is nested more than 32 levels"
    yield "dim too large", replaced(dim=3), "$.W[0]: has 2 numbers, expected dim = 3"
    yield "dim too small", replaced(dim=1), "$.W[0]: has 2 numbers, expected dim = 1"
    yield "dim of 300 digits", replaced(dim=10**299), "expected dim = 1000"
    yield "a class too many", replaced(classes=["a", "b", "c"]), "$.W: has 2 rows, expected 3"
    yield "a row too many", replaced(W=[[0, 0]] * 3), "$.W: has 3 rows, expected 2"
    yield "an intercept too many", replaced(b=[0, 0, 0]), "$.b: has 3 numbers, expected 2"
    yield "4-million-square, four numbers", replaced(dim=4_000_000), "has 2 numbers, expected dim = 4000000"
    square = replaced(dim=16 * 10**12, W=[[1, 2, 3, 4]], b=[0])
    yield "4-million-square in one row", square, "$.W: has 1 item, expected at least 2"
    yield "many classes, four numbers", replaced(classes=list(map(str, range(10_000)))), "has 2 rows, expected 10000"
    yield "byte-order mark", b"\xef\xbb\xbf" + SMALL["binary"], "byte-order mark"
    for codec in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"):
        yield codec, SMALL["binary"].decode().encode(codec), "UTF-16"
    yield "Latin-1", SMALL["binary"].decode().replace("\\u00e4", "ä").encode("latin-1"), "is not UTF-8"
    yield "trailing text", SMALL["binary"] + b" x", "text after the end"
    yield "a second head", SMALL["binary"] * 2, "text after the end"
    yield "trailing NUL", SMALL["binary"] + b"\0", "is not valid JSON"
    for what, old in {"the model": "m-1", "a class": "unsäfe", "a key": "auc", "metrics": "\0"}.items():
        changed = SMALL["binary"].replace(json.dumps(old).encode()[1:-1], b"x\\udc00")
        yield f"half a surrogate pair in {what}", changed, "half a surrogate pair"
    for name, address in {"$schema": "https://schema.invalid/s.json", "$ref": "http://127.0.0.1:9/r.json"}.items():
        yield name, replaced(**{name: address}), f"has the unknown key '{name}'"
        for key in ("W", "b", "classes", "dim", "metrics"):
            value = {name: address} if key != "metrics" else [{name: address}]
            yield f"{name} as {key}", replaced(**{key: value}), f"$.{key}: is an"


HOSTILE = list(hostile())
HUGE = {"spaces": b" " * 4096, "digits": b"9" * 4096, "a head": SMALL["binary"], "nothing": b""}
# {} is the hostile head; `heads` holds it beside a good one.
SINGLE = (
    "score rows.csv --embedding e --head {} -o out.csv",
    "report labelled.csv --embedding e --head {} --resamples 0 --card out.md",
    "report labelled.csv --embedding e --head good.json --baseline {} --resamples 0 --card out.md",
    "calibrate labelled.csv --embedding e --head {} -o out.json",
    "calibrate labelled.csv --embedding e --head {} --method platt -o out.json",
    "threshold labelled.csv --embedding e --head {} --require fpr<=0.9 -o out.json",
    "threshold --embedding e --benign rows.csv --head {} --require flag_rate<=0.9 -o out.json",
)
FOLDERS = (
    "score rows.csv --embedding e --head heads -o out.csv",
    "report categories.csv --embedding e --label a,b --head heads --resamples 0 --card out.md",
    "report categories.csv --embedding e --label a,b --head good --baseline heads --resamples 0 --card out.md",
    "calibrate categories.csv --embedding e --label a,b --head heads -o out",
    "threshold categories.csv --embedding e --label a,b --head heads --require fpr<=0.9 -o out",
)


@pytest.fixture
def hostile_folder(folder: Path) -> Path:
    """Tables, good heads, and a place for hostile ones."""
    head = encoded(BINARY | {"classes": ["0", "1"]})
    (folder / "labelled.csv").write_text(LABELLED)
    lines = LABELLED.splitlines()[1:]
    (folder / "categories.csv").write_text("\n".join(["a,b,e0,e1", *(f"{line[0]},{line}" for line in lines)]) + "\n")
    (folder / "good.json").write_bytes(head)
    for name in ("good", "heads"):
        (folder / name).mkdir()
        for category in "ab":
            (folder / name / f"{category}.json").write_bytes(head)
    return folder


def check_refusal(outcome: Outcome, shown: str, said: str, folder: Path) -> None:
    *_, cpu = outcome.out.splitlines()
    assert outcome.ended_well({4}), outcome
    assert outcome.err.startswith(f"headeval: {shown}: ")
    assert said in outcome.err
    assert len(outcome.err) < 500
    assert not list(folder.glob("out*"))
    assert float(cpu) < SECONDS, outcome


def refused(folder: Path, *, every: bool) -> None:
    """Give each hostile head to all commands, or to one for a head and one for a folder, each in its turn."""
    jobs = [
        (line, content, said, "heads/b.json" if lines is FOLDERS else "head.json")
        for number, (_, content, said) in enumerate(HOSTILE)
        for lines in (SINGLE, FOLDERS)
        for line in (lines if every else [lines[number % len(lines)]])
    ]
    cases = (Case(line.format(shown).split(), {shown: content}) for line, content, _, shown in jobs)
    found = outcomes(cases, folder, memory=MEMORY, function="reliability.independent_heads:timed")
    for (_, _, said, shown), outcome in zip(jobs, found, strict=True):
        check_refusal(outcome, shown, said, folder)


def test_good_heads_pass_where_hostile_ones_are_refused(hostile_folder: Path) -> None:
    """Else a refusal would say nothing."""
    lines = [line.format("good.json") for line in (*SINGLE, *FOLDERS)]
    cases = [Case([*line.split(), "--quiet", "--force"]) for line in lines]
    for outcome in outcomes(cases, hostile_folder, memory=2 * MEMORY):
        assert outcome.ended_well({0}), outcome


def test_a_hostile_head_is_a_clear_error_within_a_second_and_200_mb(hostile_folder: Path) -> None:
    """Alone, as what is compared with, and among the heads of a folder."""
    refused(hostile_folder, every=False)


@pytest.mark.slow
def test_a_hostile_head_is_a_clear_error_through_every_command(hostile_folder: Path) -> None:
    refused(hostile_folder, every=True)


def test_a_file_of_2_gb_is_refused_unread(hostile_folder: Path) -> None:
    """A sparse one, with something else than a hole at both ends."""
    names = []
    for what, content in HUGE.items():
        name = f"{what.replace(' ', '-')}.json"
        for path in (hostile_folder / name, hostile_folder / "heads" / "b.json"):  # the last one stays in the folder
            with path.open("wb") as file:
                file.write(content)
                file.truncate(2**31)
                file.seek(-len(content), 2)
                file.write(content)
        names += [(line.format(name), name) for line in SINGLE]
    names += [(line, "heads/b.json") for line in FOLDERS]
    cases = [Case(line.split()) for line, _ in names]
    found = outcomes(cases, hostile_folder, memory=MEMORY, function="reliability.independent_heads:timed")
    for (_, shown), outcome in zip(names, found, strict=True):
        check_refusal(outcome, shown, "is larger than 512 MB, which no linear head is", hostile_folder)


def test_a_head_that_memory_cannot_hold_is_a_head_error(folder: Path) -> None:
    """A file below the limit of its size may still take more than there is: that is no bug of headeval."""
    content = encoded(BINARY).replace(b'"\\u0000"', b"[" + b"{}," * MB + b"0]")
    case = Case(score("head.json"), {"head.json": content})
    (outcome,) = outcomes([case], folder, memory=MEMORY // 4, seconds=120)
    assert outcome.ended_well({4}), outcome
    assert outcome.err == "headeval: head.json: takes more memory to read than there is\n"


def test_references_within_metrics_are_data_and_are_not_followed(folder: Path) -> None:
    """Whatever stands there is carried along; a child reports every socket it opens."""
    metrics = {"$schema": "https://schema.invalid/s.json", "$ref": "http://127.0.0.1:9/r.json", "$id": "http://x/"}
    (outcome,) = outcomes([Case(score("head.json"), {"head.json": replaced(metrics=metrics)})], folder)
    assert outcome.ended_well({0}), outcome
    check_scores(plain_head(replaced(metrics=metrics)), written_scores(folder / "scored.csv"))


# --- names of heads that cannot be opened


def test_a_name_that_no_file_can_have_is_a_head_error(hostile_folder: Path) -> None:
    """One of 300 characters was a bug of headeval, exit 70, and so was one in a folder that may not be entered."""
    for outcome in outcomes([Case(line.format("x" * 300).split()) for line in SINGLE], hostile_folder):
        assert outcome.ended_well({4}), outcome
        assert "cannot be read: File name too long" in outcome.err


OUTPUTS = (
    "fit labelled.csv --embedding e --folds 0 -o {}",
    "fit categories.csv --embedding e --label a,b --folds 0 -o {}",
    "score rows.csv --embedding e --head good.json -o {}.csv",
    "calibrate labelled.csv --embedding e --head good.json -o {}",
    "calibrate categories.csv --embedding e --label a,b --head good -o {}",
    "threshold labelled.csv --embedding e --head good.json --require fpr<=0.9 -o {}",
    "report labelled.csv --embedding e --head good.json --html {}",
    "report labelled.csv --embedding e --head good.json --card {}",
    "report labelled.csv --embedding e --head good.json --require n>=1 --junit {}",
    "report labelled.csv --embedding e --head good.json --baseline good.json --changed {}.csv",
)


def test_a_name_that_no_output_can_have_is_an_output_error(hostile_folder: Path) -> None:
    """It was a bug of headeval, exit 70."""
    before = sorted(hostile_folder.rglob("*"))
    for outcome in outcomes([Case(line.format("x" * 300).split()) for line in OUTPUTS], hostile_folder):
        assert outcome.ended_well({6}), outcome
        assert "File name too long" in outcome.err
    assert sorted(hostile_folder.rglob("*")) == before
