"""Heads that score together give the bits of each by itself."""

import pickle

import numpy as np
import pytest

from headeval.head import LinearHead
from headeval.joint_heads import JointHeads


def head(seed: int, n_classes: int, dim: int = 5, *, scale: float = 1.0) -> LinearHead:
    rng = np.random.default_rng(seed)
    W = scale * rng.normal(size=(n_classes, dim))
    return LinearHead("m", tuple(map(str, range(n_classes))), W, rng.normal(size=n_classes), 0.5)


HEADS = [
    head(0, 2),
    head(1, 3),
    head(2, 2, scale=1e300),
    LinearHead.binary([0] * 5, 1, classes=("a", "b"), embedding_model="m"),
]


@pytest.mark.parametrize("heads", [HEADS, HEADS[:1], HEADS[1:2]], ids=["four", "one", "one of three classes"])
def test_the_logits_of_each_head_have_the_bits_that_it_has_by_itself(heads: list[LinearHead]) -> None:
    embeddings = np.random.default_rng(9).normal(size=(1000, 5)).astype(np.float32)
    embeddings[3] = 0
    joint = JointHeads(heads)
    logits, class_logits = joint.logits(embeddings), joint.class_logits(embeddings)
    assert logits.shape == (1000, len(heads))
    for place, one in enumerate(heads):
        assert logits[:, place].tobytes() == one.logits(embeddings).tobytes()
        assert np.ascontiguousarray(class_logits[place]).tobytes() == one.class_logits(embeddings).tobytes()


def test_they_can_be_sent_to_other_processes() -> None:
    embeddings = np.ones((2, 5))
    joint = pickle.loads(pickle.dumps(JointHeads(HEADS)))  # noqa: S301 - our own bytes
    assert joint.dim == 5
    assert (joint.logits(embeddings) == JointHeads(HEADS).logits(embeddings)).all()


def test_no_head_and_different_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        JointHeads([])
    with pytest.raises(ValueError, match=r"\[4, 5\]"):
        JointHeads([head(0, 2), head(0, 2, 4)])
