"""Where symjax does not follow MXNet's storage table, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.parity.storage.case import StorageCase


@dataclass(frozen=True)
class Difference:
    """Cases in which symjax differs from MXNet.

    Attributes:
        cases: pattern of the case ids.
        why: the reason.
        stages: stages concerned (default: all).
        keys: pattern of the arrays concerned (default: all).
        types: the storage types of these arrays differ (the numbers agree).
        pattern: what is stored differs (the numbers agree).
        wrong: MXNet's numbers are wrong: the dense definition counts.
        raises: MXNet raises and so must symjax, rather than give the dense definition's numbers.
        runs: MXNet raises and symjax must not.
        full: MXNet raises; the definition are the same inputs, but for the gradient, with all their rows stored.
    """

    cases: str
    why: str
    stages: tuple[str, ...] = ()
    keys: str = ""
    types: bool = False
    pattern: bool = False
    wrong: bool = False
    raises: bool = False
    runs: bool = False
    full: bool = False

    def covers(self, key: str) -> bool:
        return re.search(self.keys, key) is not None


_ADD = r"(elemwise_add|elemwise_sub|elemwise_mul|_maximum|_minimum|_hypot|_grad_add|add_n)\("

_LAZY = r"(sgd|sgd_mom|adam|ftrl|_sparse_adagrad|_contrib_group_adagrad)_update"

DIFFERENCES = (
    # MXNet: refuses to update weights of which some rows are not stored. They are zero, and are added.
    Difference(rf"^{_LAZY}\(row_sparse(,row_sparse)+\)", "weights of which some rows are stored", runs=True, full=True),
    # MXNet: in place, the momentum decays by the weight that was just updated.
    Difference(r"^nag_mom_update", "the order of operations in place", wrong=True),
    # MXNet: refuses wd also where all is dense, which here is the dense definition.
    Difference(r"^_sparse_adagrad_update\(.*,row_sparse.*wd=0\.1", "no decay of row_sparse gradients", raises=True),
    # MXNet: binary kernels on two csr matrices leave columns unsorted and, where results cancel, memory unwritten.
    Difference(r"^(elemwise_sub|elemwise_mul|_maximum|_minimum|_hypot|_grad_add)\(csr[^,]*,csr", "MXNet leaves garbage",
               keys="^out", wrong=True),
    # MXNet: sums drop what became zero; here the pattern of a sum is the union of the patterns.
    Difference(rf"^{_ADD}", "sums keep stored zeros", keys="^out", pattern=True),
    # MXNet: joining csr matrices drops stored zeros; retain of an array that stores nothing stores nothing.
    Difference(r"^Concat\(csr|^_sparse_retain\(row_sparse:none", "stored zeros", keys="^out", pattern=True),
    # MXNet: the product of a dense and a csr matrix stores every element that could be non-zero.
    Difference(r"^dot\((default|row_sparse)[^,]*,csr", "the pattern is that of a cast", keys="^out", pattern=True),
    # MXNet: executors leave the gradient of a csr operand zero in most cases.
    Difference(r"^dot\(csr", "MXNet leaves it zero", stages=("train", "bind", "tape"), keys="^grad:lhs", wrong=True),
    Difference(r"^dot\([a-z_:]*,csr", "MXNet leaves it zero", stages=("train", "bind", "tape"), keys="^grad:rhs",
               wrong=True),
    # MXNet: a gradient times a function of a row_sparse input is stored at the union of the rows of both. The rows of
    # the input that the batch does not touch have a zero gradient; here they are not stored.
    Difference(r">dot|square dot|factorization", "only the rows touched are stored", stages=("train", "tape"),
               keys="^grad", pattern=True),
    # A csr matrix whose own gradient is wanted is read dense, and rows that it touches with stored zeros are lost.
    Difference(r"^dot\(csr:zeros", "stored zeros of data that is differentiated", keys="^grad:rhs", pattern=True),
    # The rest: numbers agree; places that store zeros are others. MXNet casts dense gradients and drops rows of zeros.
    Difference(r"^(?!dot|Embedding|_contrib_SparseEmbedding|_sparse_retain|_square_sum|cast_storage|take)[^>+]*\(",
               "zeros in gradients", stages=("train", "tape"), keys="^grad", pattern=True),
    Difference(r"", "casts on the tape drop zeros", stages=("tape",), keys="^grad", pattern=True),
    # An argument whose gradient is dense is read dense: zeros that it stores are dropped from what comes of it.
    Difference(r"", "stored zeros in training", stages=("train", "bind"), keys="^out", pattern=True),
    # MXNet: the gradient of retain has the order of the ids.
    Difference(r"retain\[order\]|^_sparse_retain.*(order|twice)", "rows of gradients ascend", keys="^grad",
               pattern=True),
    # MXNet: products search rows by bisection, which fails in what retain leaves in the order of the ids.
    Difference(r"^retain\[order\]>dot", "rows out of order", keys="^out", wrong=True),
    # MXNet: adding (grad_req="add") the sum of several row_sparse gradients writes instead.
    Difference(r"\[grad_req=add\]", "MXNet overwrites", stages=("train", "tape"), keys="^grad", wrong=True),
    # MXNet: 0 ** x has the derivative 0 * log(0) = nan.
    Difference(r"_rpower_scalar.*0\.0|power\(.*(csr|row_sparse)", "the derivative of 0 ** x is 0",
               stages=("train", "bind", "tape"), keys="^grad", wrong=True),
    # MXNet: the gradient of a product divides by each element, which is nan where that is zero.
    Difference(r"^(nan)?prod\(", "division by zeros", stages=("train", "bind", "tape"), keys="^grad", wrong=True),
    # Where the argument is read dense (see below), what it does not store is 0 / 0 = nan.
    Difference(r"^_div_scalar\(.*=0\.0", "zero divided by zero", stages=("train", "bind"), keys="^out", wrong=True),
    # MXNet: gamma and gammaln have a pole at 0, where elements are not stored; its derivative there is nan or infinite.
    Difference(r"^gamma(ln)?(>dot)?\(.*(csr|row_sparse)", "the pole of gamma", stages=("train", "bind", "tape"),
               keys="^grad", wrong=True),
    # Constraints of the interface.
    Difference(r"^cast_storage\(csr[^,]*\),stype=row_sparse|^cast_storage\(row_sparse[^,]*\),stype=csr",
               "no direct conversion", raises=True),
    Difference(r"^clip\((csr|row_sparse)[^,]*\),a_min=(0\.1|-0\.5,a_max=-0\.1)", "zero is out of range", raises=True),
    Difference(r"^_sparse_retain\((default|csr)", "retain needs row_sparse data", raises=True),
    # MXNet: on the tape nobody reads the result that is an error.
    Difference(r"^dot\((csr,[a-z_]*\),3d|default,csr\),vector on the left)", "products of matrices only",
               stages=("predict", "nd", "tape"), raises=True),
    Difference(r"^take\(csr[^)]*\),axis=0,mode=(clip|wrap),ids", "a matrix of ids", raises=True),
)


def differences(case: StorageCase, stage: str) -> list[Difference]:
    """The documented differences of a case's stage."""
    return [d for d in DIFFERENCES if re.search(d.cases, case.id) and (not d.stages or stage in d.stages)]
