"""What every measure and every head must do, whatever it measures or was fitted by: a check each, in two registries.

A check takes its subject and fails with the subject's name; it knows no expected numbers.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.files.heads import read_head, write_head
from headeval.head import LinearHead

Array = NDArray[Any]
Rows = Mapping[str, Array]
"""The columns of rows by name; all have the same length."""


# --- arrays in every form


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def mapped(array: Array, folder: Path, number: int = 0) -> Array:
    """Return a read-only map of a file that holds the array."""
    path = folder / f"{number}.bin"
    array.tofile(path)
    return np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape)


def every_other(array: Array) -> Array:
    """Return the array as a view whose rows and numbers do not lie side by side."""
    wide = np.full([2 * size for size in array.shape], array.flat[0], dtype=array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def backwards(array: Array) -> Array:
    """Return the array as a view of negative strides."""
    return array[::-1].copy()[::-1]


FORMS: dict[str, Callable[[Array], Any]] = {
    "read-only": read_only,
    "strided": every_other,
    "negative strides": backwards,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "Fortran": lambda array: np.array(array, order="F"),
    "lists": lambda array: array.tolist(),
}


def flat(result: Any) -> Iterator[Any]:
    """Yield the numbers of a result, whatever it is made of; floats as they are, all else as itself."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        for field in dataclasses.fields(result):
            yield from flat(getattr(result, field.name))
    elif isinstance(result, Mapping):
        yield from flat(tuple(result.values()))
    elif isinstance(result, list | tuple):
        for part in result:
            yield from flat(part)
    elif isinstance(result, np.ndarray):
        yield from result.ravel().tolist()
    elif isinstance(result, enum.Enum) or result is None:
        yield str(result)
    else:
        yield result


def bits(result: Any) -> list[str]:
    return [part.hex() if isinstance(part, float) else repr(part) for part in flat(result)]


def agree(found: Any, expected: Any, tolerance: float, name: str) -> None:
    """Hold results against each other: bit for bit with a tolerance of 0."""
    if tolerance == 0:
        assert bits(found) == bits(expected), name
        return
    ours, theirs = list(flat(found)), list(flat(expected))
    assert len(ours) == len(theirs), name
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, float) and isinstance(other, float | int):
            np.testing.assert_allclose(one, other, atol=tolerance, rtol=tolerance, err_msg=name)
        else:
            assert one == other, name


# --- measures


@dataclasses.dataclass(frozen=True)
class Measure:
    """A measure of `headeval.core`, and what must hold of it.

    Attributes
    ----------
    of : rows to anything `flat` takes apart.
    covers : the function of core, "module.name".
    order : tolerance when rows are shuffled, 0 for the same bits; None where rows are known by their position.
    doubled : tolerance when every row stands twice; None where that makes it surer of itself, and so another number.
    weights : tolerance when all weights are the same; None where it takes no weights.
    absent : whether rows of weight 0 are as if absent, to the same tolerance.
    mirror : what the measure of 1 − p and 1 − y says in the words of that of p and y; None where there is no such rule.
    ranks : whether only the order of the scores counts.
    low, high : its range.
    """

    of: Callable[[Rows], Any]
    covers: str
    order: float | None = 0.0
    doubled: float | None = None
    weights: float | None = None
    absent: bool = True
    mirror: Callable[[Any], Any] | None = None
    ranks: bool = False
    low: float = -np.inf
    high: float = np.inf


MEASURE_CHECKS: dict[str, Callable[[str, Measure, Rows, Path], None]] = {}


def _of_measures(check: Callable[[str, Measure, Rows, Path], None]) -> Callable[[str, Measure, Rows, Path], None]:
    MEASURE_CHECKS[check.__name__.removeprefix("check_")] = check
    return check


@_of_measures
def check_inputs_stay_as_they_are(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    given = {key: column.copy() for key, column in rows.items()}
    first = bits(measure.of(given))
    assert all(given[key].tobytes() == column.tobytes() for key, column in rows.items()), name
    assert bits(measure.of(given)) == first, name  # and nothing is remembered


@_of_measures
def check_arrays_of_any_form_are_taken(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    expected = measure.of(rows)
    for form, made in FORMS.items():
        agree(measure.of({key: made(column) for key, column in rows.items()}), expected, 0, f"{name}: {form}")
    maps = {key: mapped(column, folder, number) for number, (key, column) in enumerate(rows.items())}
    agree(measure.of(maps), expected, 0, f"{name}: memory maps")


@_of_measures
def check_numbers_of_any_type_are_taken(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    """The scores are multiples of 1/64, so that all types hold the same numbers."""
    expected = measure.of(rows)
    for kind in ("f2", "f4", "f8", "g"):
        floats = {key: column.astype(kind) if column.dtype.kind == "f" else column for key, column in rows.items()}
        agree(measure.of(floats), expected, 0, f"{name}: scores {kind}")
    for kind in ("?", "i1", "u1", "i4", "u8", "f4", "f8", "O"):
        binary = {
            key: column.astype(kind) if column.dtype.kind == "i" and column.max() < 2 else column
            for key, column in rows.items()
        }
        if kind == "O":  # anything at all can hide in objects
            _refused(lambda given: measure.of(given), binary, rows, name)
        else:
            agree(measure.of(binary), expected, 0, f"{name}: labels {kind}")


def _refused(of: Callable[[Rows], Any], given: Rows, rows: Rows, name: str) -> None:
    try:
        found = of(given)
    except ValueError as error:
        found = str(error)
    if isinstance(found, str):
        assert "must be" in found, name
    else:  # it takes no labels
        agree(found, of(rows), 0, name)


@_of_measures
def check_the_order_of_rows_changes_nothing(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    if measure.order is None:
        return
    n, expected = len(rows["y"]), measure.of(rows)
    for order in (np.arange(n)[::-1], np.random.default_rng(1).permutation(n)):
        agree(measure.of({key: column[order] for key, column in rows.items()}), expected, measure.order, name)


@_of_measures
def check_rows_that_stand_twice_change_nothing(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    if measure.doubled is not None:
        twice = {key: np.concatenate([column, column]) for key, column in rows.items()}
        agree(measure.of(twice), measure.of(rows), measure.doubled, name)


@_of_measures
def check_equal_weights_are_none(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    if measure.weights is None:
        return
    expected = measure.of(rows)
    for each in (1.0, 2.0**-40, 3.0):
        weighted = {**rows, "w": np.full(len(rows["y"]), each)}
        agree(measure.of(weighted), expected, measure.weights, f"{name}: weights {each:g}")
    uneven = 1.0 + np.arange(len(rows["y"])) % 3
    found = [measure.of({**rows, "w": np.ldexp(uneven, power)}) for power in (0, -40, 500)]
    agree(found[1:], [found[0]] * 2, 0, f"{name}: weights in another unit")


@_of_measures
def check_rows_of_no_weight_are_absent(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    if measure.weights is None or not measure.absent:
        return
    kept = np.random.default_rng(2).random(len(rows["y"])) < 0.7
    expected = measure.of({key: column[kept] for key, column in rows.items()})
    agree(measure.of({**rows, "w": kept.astype(np.float64)}), expected, measure.weights, name)


@_of_measures
def check_the_other_class_mirrors_it(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    if measure.mirror is None:
        return
    logits = {key: -rows[key] for key in ("z", "old_z")}
    other = {**rows, **logits, "p": 1 - rows["p"], "old": 1 - rows["old"], "y": 1 - rows["y"]}
    agree(measure.mirror(measure.of(other)), measure.of(rows), 1e-12, name)


@_of_measures
def check_only_the_order_of_scores_counts(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    if not measure.ranks:
        return
    expected = measure.of(rows)
    scales: list[Callable[[Array], Array]] = [
        lambda s: s * 1e-300,
        lambda s: s * 1e300 - 5e299,
        lambda s: np.exp(3 * s),
        lambda s: (s - 2) ** 3,
        lambda s: (64 * s).astype(np.int64),
    ]
    for scaled in scales:
        agree(measure.of({**rows, **{key: scaled(rows[key]) for key in ("p", "old")}}), expected, 0, name)


@_of_measures
def check_it_stays_in_its_range(name: str, measure: Measure, rows: Rows, folder: Path) -> None:
    """On few rows, too, where those give it at all."""
    n = len(rows["y"])
    for few in (slice(0, n), slice(0, n // 2), slice(n // 2, n), slice(0, 12)):
        try:
            found = measure.of({key: column[few] for key, column in rows.items()})
        except ValueError:
            if few == slice(0, n):
                raise
            continue
        floats = np.array([part for part in flat(found) if isinstance(part, float)])
        assert not np.isnan(floats).any(), name
        assert (floats >= measure.low).all(), name
        assert (floats <= measure.high).all(), name


# --- heads


@dataclasses.dataclass(frozen=True)
class Fitting:
    """A way to a head.

    Attributes
    ----------
    fit : (embeddings (n, d), labels (n,)) to a head.
    close : how far, of the largest weight, heads of the same rows may be apart where sums are added in another order.
    """

    fit: Callable[[Array, Array], LinearHead]
    close: float


HEAD_CHECKS: dict[str, Callable[[str, LinearHead, Array, Path], None]] = {}
FIT_CHECKS: dict[str, Callable[[str, Fitting, Array, Array, Path], None]] = {}


def _of_heads(check: Callable[[str, LinearHead, Array, Path], None]) -> Callable[[str, LinearHead, Array, Path], None]:
    HEAD_CHECKS[check.__name__.removeprefix("check_")] = check
    return check


def _of_fits(
    check: Callable[[str, Fitting, Array, Array, Path], None],
) -> Callable[[str, Fitting, Array, Array, Path], None]:
    FIT_CHECKS[check.__name__.removeprefix("check_")] = check
    return check


def scored(head: LinearHead, embeddings: Any) -> tuple[Array, ...]:
    """Return all that a head says of embeddings."""
    said = (head.class_logits, head.logits, head.probabilities, head.probs, head.flagged)
    return tuple(function(embeddings) for function in said)


@_of_heads
def check_a_batch_is_its_rows(name: str, head: LinearHead, embeddings: Array, folder: Path) -> None:
    together = scored(head, embeddings)
    for step in (1, 7):
        parts = [scored(head, embeddings[at : at + step]) for at in range(0, len(embeddings), step)]
        agree([np.concatenate(part) for part in zip(*parts, strict=True)], together, 0, f"{name}: {step} a time")


@_of_heads
def check_embeddings_of_any_form_are_taken(name: str, head: LinearHead, embeddings: Array, folder: Path) -> None:
    expected, before = scored(head, embeddings), embeddings.tobytes()
    for form, made in FORMS.items():
        agree(scored(head, made(embeddings)), expected, 0, f"{name}: {form}")
    agree(scored(head, mapped(embeddings, folder)), expected, 0, f"{name}: a memory map")
    for kind in ("f2", "f4", "f8", "g"):
        agree(scored(head, embeddings.astype(kind)), expected, 0, f"{name}: {kind}")
    whole = (64 * embeddings).astype("i2")
    agree(scored(head, whole), scored(head, whole.astype("f8")), 0, f"{name}: whole numbers")
    assert embeddings.tobytes() == before, name


@_of_heads
def check_the_length_of_an_embedding_counts_nothing(
    name: str, head: LinearHead, embeddings: Array, folder: Path
) -> None:
    embeddings = embeddings.astype(np.float64)
    expected = scored(head, embeddings)
    for power in (-400, -100, 1, 100, 400):  # exact, where no number leaves the range
        agree(scored(head, np.ldexp(embeddings, power)), expected, 0, f"{name}: 2^{power}")
    for factor in (1e-300, 0.1, 3.7, 1e300):
        ours = scored(head, embeddings * factor)
        scale = max(1.0, float(np.abs(head.W).max()))
        agree(ours[0] / scale, expected[0] / scale, 1e-14, f"{name}: times {factor:g}")


@_of_heads
def check_probability_rises_with_the_logit(name: str, head: LinearHead, embeddings: Array, folder: Path) -> None:
    _, logits, probabilities, probs, flagged = scored(head, embeddings)
    order = np.argsort(logits, kind="stable")
    assert (np.diff(probs[order]) >= 0).all(), name
    assert (np.diff(flagged[order].astype(int)) >= 0).all(), name
    assert probabilities.min() >= 0, name
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-15 * len(head.classes), err_msg=name)
    np.testing.assert_allclose(probabilities[:, -1], probs, atol=1e-15, err_msg=name)


@_of_heads
def check_a_folded_calibration_is_that_of_the_logit(
    name: str, head: LinearHead, embeddings: Array, folder: Path
) -> None:
    z = head.class_logits(embeddings)
    scale = max(1.0, float(np.abs(z).max()))
    for T in (0.5, 1.0, 3.7):
        agree(head.with_temperature(T).class_logits(embeddings) / scale, z / T / scale, 1e-14, f"{name}: T = {T}")
    if len(head.classes) == 2:
        folded = head.with_platt(1.7, -0.3).logits(embeddings)
        agree(folded / scale, (1.7 * head.logits(embeddings) - 0.3) / scale, 1e-14, f"{name}: Platt")


@_of_heads
def check_a_file_gives_it_back(name: str, head: LinearHead, embeddings: Array, folder: Path) -> None:
    write_head(head, folder / "a.json")
    back = read_head(folder / "a.json")
    assert back == head, name
    agree(scored(back, embeddings), scored(head, embeddings), 0, name)
    write_head(back, folder / "b.json")
    assert (folder / "a.json").read_bytes() == (folder / "b.json").read_bytes(), name


@_of_heads
def check_permuted_features_take_their_weights_along(
    name: str, head: LinearHead, embeddings: Array, folder: Path
) -> None:
    order = np.random.default_rng(3).permutation(head.dim)
    permuted = dataclasses.replace(head, W=head.W[:, order])
    scale = max(1.0, float(np.abs(head.W).max()))
    agree(permuted.class_logits(embeddings[:, order]) / scale, head.class_logits(embeddings) / scale, 1e-14, name)


def parameters(head: LinearHead) -> Array:
    return np.column_stack([head.W, head.b])


def near(ours: LinearHead, theirs: LinearHead, close: float, name: str) -> None:
    expected = parameters(theirs)
    np.testing.assert_allclose(
        parameters(ours), expected, rtol=0, atol=close * float(np.abs(expected).max()), err_msg=name
    )


@_of_fits
def check_a_fit_can_be_done_again(name: str, way: Fitting, embeddings: Array, labels: Array, folder: Path) -> None:
    first, before = way.fit(embeddings, labels), (embeddings.tobytes(), labels.tobytes())
    assert way.fit(embeddings, labels) == first, name
    assert (embeddings.tobytes(), labels.tobytes()) == before, name


@_of_fits
def check_a_fit_takes_arrays_that_cannot_be_written(
    name: str, way: Fitting, embeddings: Array, labels: Array, folder: Path
) -> None:
    first = way.fit(embeddings, labels)
    assert way.fit(read_only(embeddings), read_only(labels)) == first, name
    assert way.fit(mapped(embeddings, folder, 0), mapped(labels, folder, 1)) == first, name
    assert way.fit(every_other(embeddings), backwards(labels)) == first, name


@_of_fits
def check_permuted_features_give_permuted_weights(
    name: str, way: Fitting, embeddings: Array, labels: Array, folder: Path
) -> None:
    order = np.random.default_rng(4).permutation(embeddings.shape[1])
    fitted = way.fit(embeddings, labels)
    near(way.fit(embeddings[:, order], labels), dataclasses.replace(fitted, W=fitted.W[:, order]), way.close, name)


@_of_fits
def check_permuted_rows_give_the_same_weights(
    name: str, way: Fitting, embeddings: Array, labels: Array, folder: Path
) -> None:
    order = np.random.default_rng(5).permutation(len(embeddings))
    near(way.fit(embeddings[order], labels[order]), way.fit(embeddings, labels), way.close, name)


@_of_fits
def check_the_lengths_of_embeddings_count_nothing(
    name: str, way: Fitting, embeddings: Array, labels: Array, folder: Path
) -> None:
    fitted = way.fit(embeddings, labels)
    powers = np.random.default_rng(6).integers(-8, 8, (len(embeddings), 1))
    assert way.fit(np.ldexp(embeddings, powers), labels) == fitted, name  # each row by its own, exact factor
    near(way.fit(np.ldexp(embeddings, 10 * powers), labels), fitted, way.close, f"{name}: of very different lengths")
    for factor in (1e-300, 3.7, 1e300):
        near(way.fit(embeddings.astype("f8") * factor, labels), fitted, way.close, f"{name}: times {factor:g}")
