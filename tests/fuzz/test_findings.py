"""What hunting has found stays found: every finding and every seed again, and a few new inputs for each target."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import hunting

NAMES = hunting.names()
FINDINGS = [path for name in NAMES for path in hunting.kept(name)]
# A command takes a hundred times as long as a text; and what a Parquet file does to another pyarrow may end the tests.
EXAMPLES = {"command_line": 6, "parquet_files": 1}
EVERY = {"command_line": 3}


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_keeps_its_promise_now(path: Path) -> None:
    hunting.load(path.parent.name).check(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_seeds_keep_every_promise(name: str) -> None:
    target = hunting.load(name)
    for seed in target.seeds()[:: EVERY.get(name, 1)]:
        target.check(seed)


@pytest.mark.parametrize("name", NAMES)
def test_changed_seeds_keep_every_promise(name: str) -> None:
    """The same inputs in every run: to look for others is the hunt's affair, and no change of something else fails."""
    target = hunting.load(name)
    seeds = target.seeds()

    @settings(max_examples=EXAMPLES.get(name, 60), derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(st.randoms(use_true_random=False))
    def changed(rng: random.Random) -> None:
        target.check(hunting.mutated(rng, seeds, target.WORDS))

    changed()


def test_every_finding_belongs_to_a_target() -> None:
    assert {path.name for path in hunting.FINDINGS.iterdir() if path.is_dir()} <= {*NAMES}


def test_a_finding_is_made_as_short_as_it_fails_in_the_same_place() -> None:
    def check(data: bytes) -> None:
        assert b"x" not in data or b"y" not in data
        if b"other" in data:
            raise ValueError

    assert sorted(hunting.minimised(b"an other text, then x, then y and its end", check)) == sorted(b"xy")
