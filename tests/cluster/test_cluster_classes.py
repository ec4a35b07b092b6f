"""A head of several classes on the rows that workers keep."""

from collections.abc import Callable

import numpy as np
import pytest

from headeval.cluster.reading import ClusterRows
from headeval.cluster.source import ClusterSource
from headeval.cluster.work import Cluster
from headeval.core.vectors import unit_vectors
from headeval.files.examples import read_examples
from headeval.files.tables import open_tables
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns
from headeval.solver.softmax_training import train_classes

pytestmark = pytest.mark.usefixtures("small_parts")

SAME_OPTIMUM, SAME_LOGIT = 1e-8, 2e-5
C = 3


def test_the_head_and_its_folds_are_those_of_one_machine(
    cluster: Cluster, make_tables: Callable[..., list[str]]
) -> None:
    data = make_tables()
    held = read_examples(open_tables(data), embedding="embedding").embeddings
    assert held is not None
    rng = np.random.default_rng(0)
    z = unit_vectors(held) @ rng.normal(size=(held.shape[1], C)) * 8 + rng.gumbel(size=(len(held), C))
    columns = RowColumns(z.argmax(axis=1).astype(np.uint8), rng.uniform(0.5, 2.0, len(held)))
    rows = ClusterRows(cluster, keep=True)
    read_examples(open_tables(data), embedding="embedding", hold=False, collect=rows.collect)
    sources = (
        ArraySource.of(held, columns),
        ClusterSource(rows, columns, held.shape[1], sample_bytes=100 * held.shape[1] * 8),
    )
    here, there = (
        train_classes(source, n_classes=C, penalties=(1.0,), n_folds=3, identity=np.arange(columns.n))
        for source in sources
    )
    np.testing.assert_allclose(there.fit.w, here.fit.w, rtol=0, atol=SAME_OPTIMUM)
    assert here.out_of_fold is not None
    assert there.out_of_fold is not None
    np.testing.assert_allclose(there.out_of_fold, here.out_of_fold, rtol=0, atol=SAME_LOGIT)
