"""The numpy operators of shape, indexing and linear algebra where MXNet cannot be asked: gradients, compilation."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from symjax.lowering import registry
from symjax.lowering.errors import MissingLoweringError, MXNetError, ParamError, ShapeError
from symjax.lowering.ops import _real_eigen

RNG = np.random.RandomState(3)
SQUARE = RNG.uniform(-1, 1, (2, 3, 3))
REAL = np.array([[2.0, 1.0, 0.3], [0.5, 1.0, 0.2], [0.1, -0.4, -1.5]])
"""Its eigenvalues are real and apart."""


def run(name: str, attrs: dict[str, Any], *arrays: Any, platform: str | None = "cpu") -> Any:
    """An operator on arrays."""
    op = registry.get(name)
    with jax.enable_x64(True):
        p = op.params.parse({k: str(v) for k, v in attrs.items()}, name)
        return op.rule_for(p, arrays, platform)(p, *map(jnp.asarray, arrays))


def check_gradient(name: str, attrs: dict[str, Any], *arrays: Any, platform: str | None = "cpu",
                   before: Any = lambda *xs: xs) -> None:  # fmt: skip
    """Forward and reverse derivatives against finite differences, in float64, after a function of the arrays."""
    with jax.enable_x64(True):
        f = jax.jit(lambda *xs: run(name, attrs, *before(*xs), platform=platform))
        check_grads(f, tuple(map(jnp.asarray, arrays)), order=1, atol=1e-5, rtol=1e-5, eps=1e-6)


def symmetric(a: Any) -> tuple[Any]:
    """A symmetric matrix that is far from singular: gradients of one triangle are meant for such."""
    return (a + jnp.swapaxes(a, -1, -2) + 4 * jnp.eye(a.shape[-1], dtype=a.dtype),)


@pytest.mark.parametrize(("mode", "turned"), [
    *((m, "even") for m in ("constant", "edge", "maximum", "minimum", "reflect", "symmetric")), ("reflect", "odd"),
    ("symmetric", "odd")])  # fmt: skip
def test_pad_as_numpy_with_gradient(mode: str, turned: str) -> None:
    x, widths = RNG.uniform(-1, 1, (2, 3)), ((1, 1), (0, 4))
    kw = {"reflect_type": turned} if mode in ("reflect", "symmetric") else {}
    attrs = {"pad_width": widths, "mode": mode, "reflect_type": turned}
    np.testing.assert_allclose(run("_npi_pad", attrs, x), np.pad(x, widths, mode=mode, **kw))  # type: ignore[call-overload]
    check_gradient("_npi_pad", attrs, x)


def test_pad_refuses() -> None:
    for attrs in ({"pad_width": ((1, 1),)}, {"pad_width": ((-1, 0), (0, 0))}, {"pad_width": (1, 1)}):
        with pytest.raises(ShapeError, match="pad_width"):
            run("_npi_pad", attrs, np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="no element to repeat"):
        run("_npi_pad", {"pad_width": ((1, 0), (0, 0)), "mode": "edge"}, np.zeros((0, 3)))


def test_reshape_says_what_is_wrong() -> None:
    for name, attrs, what in (
        ("_np_reshape", {"newshape": (-2,)}, "-1 for one"), ("_npx_reshape", {"newshape": (-7,)}, "-1 to -6"),
        ("_npx_reshape", {"newshape": (-3, -4)}, "size 1"), ("_np_reshape", {"newshape": (5,)}, "cannot reshape"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=what):
            run(name, attrs, np.zeros((2, 3)))
    with pytest.raises(ParamError, match="order"):
        run("_np_reshape", {"newshape": (6,), "order": "F"}, np.zeros((2, 3)))


def test_eigenvectors_have_gradients() -> None:
    for platform in ("cpu", None):
        check_gradient("_npi_eig", {}, REAL, platform=platform)
        check_gradient("_npi_eigvals", {}, np.stack([REAL, REAL.T + np.eye(3)]), platform=platform)
    for triangle in "LU":
        check_gradient("_npi_eigh", {"UPLO": triangle}, SQUARE, before=symmetric)
        check_gradient("_npi_eigvalsh", {"UPLO": triangle}, SQUARE, before=symmetric)


def test_other_decompositions_have_gradients() -> None:
    check_gradient("_npi_svd", {}, SQUARE[:, :2])
    check_gradient("_npi_cholesky", {}, SQUARE, before=symmetric)
    check_gradient("_npi_solve", {}, REAL, RNG.uniform(-1, 1, 3))
    check_gradient("_npi_solve", {}, SQUARE, RNG.uniform(-1, 1, (2, 3, 2)))
    check_gradient("_npi_pinv_scalar_rcond", {}, SQUARE[:, :2])
    check_gradient("_npi_pinv_scalar_rcond", {"hermitian": True}, REAL, before=symmetric)
    check_gradient("_npi_tensorinv", {"ind": 1}, RNG.uniform(-1, 1, (4, 2, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 6])
def test_eigenvalues_without_lapack(n: int, dtype: Any) -> None:
    values, basis = RNG.uniform(-3, 3, n), RNG.uniform(-1, 1, (n, n)) + 2 * np.eye(n)
    a = (basis @ np.diag(values) @ np.linalg.inv(basis)).astype(dtype)
    w, v = (np.asarray(x) for x in run("_npi_eig", {}, a, platform="tpu"))
    assert w.dtype == v.dtype == dtype
    tolerance = 2e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(np.sort(w), np.sort(values), atol=tolerance)
    np.testing.assert_allclose(a @ v, v * w, atol=tolerance)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_eigenvalues_of_special_matrices(platform: str) -> None:
    for a in (np.zeros((2, 2)), np.eye(3), np.diag([3.0, 3.0, 1.0]), np.array([[0.0, 1], [1, 0]])):
        w, v = (np.asarray(x) for x in run("_npi_eig", {}, a, platform=platform))
        np.testing.assert_allclose(np.sort(w), np.linalg.eigvalsh(a), atol=1e-12)
        assert np.linalg.matrix_rank(v) == len(a)
    jordan = np.array([[4.0, 1], [0, 4]])  # one eigenvector, twice
    w, v = (np.asarray(x) for x in run("_npi_eig", {}, jordan, platform=platform))
    np.testing.assert_allclose(w, 4)
    np.testing.assert_allclose(np.abs(v[0]), 1)
    for a in (np.array([[0.0, 1], [-1, 0]]), np.roll(np.eye(3), 1, 0)):
        assert all(np.isnan(x).all() for x in run("_npi_eig", {}, a, platform=platform))
        assert np.isnan(run("_npi_eigvals", {}, a, platform=platform)).all()


def test_qr_steps_end() -> None:
    t, q, found = _real_eigen.schur(jnp.asarray(REAL, jnp.float32))
    assert bool(found) and not np.any(np.tril(t, -1))
    np.testing.assert_allclose(q @ t @ q.T, REAL, atol=1e-5)


def test_insert_as_numpy_with_gradient() -> None:
    a, v = RNG.uniform(-1, 1, (2, 3)), RNG.uniform(-1, 1, (2, 2))
    places = np.array([2, 0])
    np.testing.assert_array_equal(run("_npi_insert_tensor", {"axis": 1}, a, v, places), np.insert(a, places, v, 1))
    check_gradient("_npi_insert_scalar", {"axis": 1, "int_ind": 1}, a, v)
    check_gradient("_npi_insert_slice", {"axis": 1, "start": 0, "stop": 2}, a, v)
    with pytest.raises(ShapeError, match="broadcast"):
        run("_npi_insert_scalar", {"axis": 0, "int_ind": 1}, a, np.zeros(4))
    with pytest.raises(ShapeError, match="outside"):
        run("_npi_insert_scalar", {"axis": 0, "int_ind": 5}, a, np.zeros(3))


def test_shapes_that_depend_on_values_are_refused_when_compiled() -> None:
    x = jnp.arange(3.0)
    for name, args, way in (
        ("_npi_unique", (x,), "sort"), ("_npx_nonzero", (x,), "where"), ("_npi_delete", (x, x), "mask"),
        ("_npi_boolean_mask", (x, x), "SequenceMask"),
    ):  # fmt: skip
        with pytest.raises(MissingLoweringError, match=way):
            jax.jit(lambda *xs, name=name: run(name, {}, *xs))(*args)
    kept = jax.jit(lambda a: run("_npi_delete", {"int_ind": 1}, a))(x)  # the place is known: so is the shape
    np.testing.assert_array_equal(kept, [0, 2])


def test_delete_by_mask_and_out_of_range() -> None:
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(run("_npi_delete", {"axis": 1}, a, np.array([True, False, True])), a[:, 1:2])
    np.testing.assert_array_equal(run("_npi_delete", {"axis": 1}, a, np.zeros(0, np.int64)), a)
    with pytest.raises(MXNetError, match="outside"):
        run("_npi_delete", {"axis": 1}, a, np.array([3]))


def test_values_under_a_mask_when_compiled() -> None:
    a, mask = jnp.zeros((2, 3)), jnp.array([[True, False, True], [False, True, False]])
    write = jax.jit(lambda d, m, v: run("_npi_boolean_mask_assign_tensor", {"start_axis": 0}, d, m, v))
    np.testing.assert_array_equal(write(a, mask, jnp.array([7.0, 8, 9])), [[7, 0, 8], [0, 9, 0]])
    with pytest.raises(ShapeError, match="2 values for 3 places"):
        run("_npi_boolean_mask_assign_tensor", {"start_axis": 0}, a, mask, np.ones(2, np.float32))
    check_gradient("_npi_boolean_mask_assign_tensor", {"start_axis": 0}, np.ones((2, 3)), np.ones(3),
                   before=lambda d, v: (d, mask, v))  # fmt: skip


def test_constraint() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        run("_npx_constraint_check", {"msg": "must be positive"}, np.array([True, False]))
    assert bool(run("_npx_constraint_check", {}, np.array([True])))
    assert not bool(jax.jit(lambda x: run("_npx_constraint_check", {}, x))(np.array([True, False])))


def test_half_precision_sums_in_float32() -> None:
    ones = np.ones(4096, np.float16)
    for name, attrs in (("_np_dot", {}), ("_npi_matmul", {}), ("_npi_tensordot_int_axes", {"axes": 1}),
                        ("_npi_einsum", {"num_args": 2, "subscripts": "i,i"})):  # fmt: skip
        assert float(run(name, attrs, ones, ones)) == 4096
    assert float(run("_np_trace", {}, np.eye(4096, dtype=np.float16))) == 4096
