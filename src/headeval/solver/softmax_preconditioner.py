"""What stands for the Hessian of C classes where a gradient is to become nearly a Newton step.

The whole Hessian has (C(d+1))² numbers. While that is a few thousand squared it is formed, in zero-sum coordinates, and
factored. Beyond, its blocks on the diagonal are, one a class: what two classes have in common is the smaller part where
there are many. Where even these are too many it is taken for a product of two small matrices: with A the mean of
diag(p) − p pᵀ over the rows, C × C, and G the sum of (u, 1)(u, 1)ᵀ, about A ⊗ G. Eigenvalues of both give the inverse,
for any penalty at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.solver.descent import FEW_ROWS
from headeval.solver.lbfgs import Solve
from headeval.solver.preconditioner import Factor
from headeval.solver.softmax_hessians import ClassHessians, MeanCurvature, SoftmaxHessian, zero_sum_basis
from headeval.solver.softmax_plan import Form, form_for
from headeval.solver.source import Summable
from headeval.solver.sums import Hessian

_LEAST = 1e-7  # of the largest eigenvalue: below it float32 products are rounding


class Curvature(Protocol):
    """Something near the Hessian without a penalty."""

    def solver(self, l2: float) -> Solve | None:
        """Return what multiplies flat vectors (C(d+1),) with nearly the inverse Hessian, None where it is singular."""


def curvature_at(source: Summable, W: FloatArray, form: Form | None = None) -> Curvature:
    """Return what stands for the Hessian of a source's rows at W (C, d+1), in the best form for its size by default."""
    form = form or form_for(source.d, len(W))
    if form is Form.PRODUCT:
        return Product.of(source, W)
    if form is Form.BLOCKS:
        return Blocks(source.total(ClassHessians(W))[0])
    few = source.columns.n <= FEW_ROWS
    return Whole(source.total(SoftmaxHessian(W, single=True, few=few))[0], len(W))


@dataclass(frozen=True, slots=True)
class Whole:
    """The Hessian itself.

    Attributes
    ----------
    H : ((C−1)(d+1), (C−1)(d+1)) in zero-sum coordinates.
    n_classes : C.
    """

    H: FloatArray
    n_classes: int

    def solver(self, l2: float) -> Solve | None:
        """Return the product with its inverse, from factors in float32."""
        basis = zero_sum_basis(self.n_classes)
        factor = Factor.of(self.H, l2=l2, classes=self.n_classes - 1)
        if factor is None:
            return None

        def solve(g: FloatArray) -> FloatArray:
            inner = basis.T @ g.reshape(self.n_classes, -1)
            step: FloatArray = basis @ factor.solve(inner.ravel()).reshape(inner.shape)
            return step.ravel()

        return solve


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of the Hessian on its diagonal.

    Attributes
    ----------
    H : (C, d+1, d+1).
    """

    H: NDArray[np.float32]

    def solver(self, l2: float) -> Solve | None:
        """Return the product with the inverse of each block, from factors in float32, as far as it sums to zero."""
        factors = [Factor.of(H, l2=l2) for H in self.H]
        if any(factor is None for factor in factors):
            return None

        def solve(g: FloatArray) -> FloatArray:
            rows = zip(factors, g.reshape(len(factors), -1), strict=True)
            step = np.stack([factor.solve(row) for factor, row in rows if factor is not None])
            flat: FloatArray = (step - step.mean(axis=0)).ravel()
            return flat

        return solve


@dataclass(frozen=True, slots=True)
class Product:
    """A ⊗ G, with features measured from their mean, so that intercepts stand apart.

    Attributes
    ----------
    classes, a : (C, C−1) eigenvectors of A, orthogonal to ones, and their eigenvalues.
    features, g : (d, d) eigenvectors of the features' part of G about the mean, and their eigenvalues.
    mean : (d,) of the features.
    total : weight of the rows.
    """

    classes: FloatArray
    a: FloatArray
    features: FloatArray
    g: FloatArray
    mean: FloatArray
    total: float

    @classmethod
    def of(cls, source: Summable, W: FloatArray) -> Self:
        """Return it for W (C, d+1), after two passes."""
        null = np.zeros(source.d + 1)
        # p(1 − p) is ¼ everywhere at zero weights of two classes.
        G = 4 * source.total(Hessian(null, single=True))[0].astype(np.float64)
        (A,) = source.total(MeanCurvature(W))
        total = float(G[-1, -1]) or 1.0
        mean = G[:-1, -1] / total
        g, features = np.linalg.eigh(G[:-1, :-1] - total * np.outer(mean, mean))
        basis = zero_sum_basis(len(W))
        a, inner = np.linalg.eigh(basis.T @ A @ basis / total)
        return cls(basis @ inner, _kept_above(a), features, np.maximum(g, 0.0), mean, total)

    def solver(self, l2: float) -> Solve | None:
        """Return the product with its inverse."""
        curvature = np.multiply.outer(self.a, self.g) + l2
        curvature = np.maximum(curvature, _LEAST * curvature.max(initial=0.0))
        if not curvature.all():
            return None

        def solve(g: FloatArray) -> FloatArray:
            inner = self.classes.T @ g.reshape(len(self.classes), -1)
            step = np.empty_like(inner)
            across = (inner[:, :-1] - np.multiply.outer(inner[:, -1], self.mean)) @ self.features
            step[:, :-1] = (across / curvature) @ self.features.T
            step[:, -1] = inner[:, -1] / (self.a * self.total) - step[:, :-1] @ self.mean
            flat: FloatArray = (self.classes @ step).ravel()
            return flat

        return solve


def _kept_above(eigenvalues: FloatArray) -> FloatArray:
    return np.maximum(eigenvalues, _LEAST * float(eigenvalues.max(initial=0.0)) or 1.0)


def solvers(curvature: Curvature, penalties: Sequence[float]) -> dict[float, Solve]:
    """Return the solver for each penalty, without those for which the Hessian is singular in float32."""
    found = {l2: curvature.solver(l2) for l2 in dict.fromkeys(penalties)}
    return {l2: solve for l2, solve in found.items() if solve is not None}
