"""Helpers of tests (MXNet's `mx.test_utils`): comparisons, random arrays, checks of symbols' outputs and gradients.

Not there: `check_gluon_hybridize_consistency`, for there is no Gluon.
"""

from symjax.context import Context, current_context
from symjax.ndarray import array
from symjax.runtime import Features
from symjax.symbol import Symbol
from symjax.test_utils._check import (
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    simple_forward,
)
from symjax.test_utils._compare import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    compare_ndarray_tuple,
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    locationError,
    same,
    same_array,
    same_symbol_structure,
)
from symjax.test_utils._consistency import check_consistency, compare_optimizer
from symjax.test_utils._data import (
    download,
    download_model,
    get_bz2_data,
    get_cifar10,
    get_mnist,
    get_mnist_iterator,
    get_mnist_pkl,
    get_mnist_ubyte,
    get_zip_data,
)
from symjax.test_utils._misc import (
    DummyIter,
    chi_square_check,
    discard_stderr,
    environment,
    gen_buckets_probs_with_ppf,
    get_im2rec_path,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
    list_gpus,
    mean_check,
    retry,
    var_check,
    verify_generator,
)
from symjax.test_utils._random import (
    assign_each,
    assign_each2,
    collapse_sum_like,
    create_2d_tensor,
    create_sparse_array,
    create_sparse_array_zd,
    create_vector,
    default_context,
    get_identity_mat,
    get_identity_mat_batch,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    np_reduce,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    rand_sparse_ndarray,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    set_default_context,
    shuffle_csr_column_indices,
)
from symjax.util import get_cuda_compute_capability, getenv, setenv, use_np

__all__ = ["Context", "DummyIter", "Features", "Symbol", "almost_equal", "array", "assert_allclose",
           "assert_almost_equal", "assert_almost_equal_ignore_nan", "assert_almost_equal_with_err",
           "assert_exception", "assign_each", "assign_each2", "checkShapes", "check_consistency",
           "check_numeric_gradient", "check_speed", "check_symbolic_backward", "check_symbolic_forward",
           "chi_square_check", "collapse_sum_like", "compare_ndarray_tuple", "compare_optimizer", "create_2d_tensor",
           "create_sparse_array", "create_sparse_array_zd", "create_vector", "current_context", "default_atols",
           "default_context", "default_dtype", "default_numeric_eps", "default_rtols", "discard_stderr", "download",
           "download_model", "effective_dtype", "environment", "gen_buckets_probs_with_ppf", "get_atol",
           "get_bz2_data", "get_cifar10", "get_cuda_compute_capability", "get_etol", "get_identity_mat",
           "get_identity_mat_batch", "get_im2rec_path", "get_mnist", "get_mnist_iterator", "get_mnist_pkl",
           "get_mnist_ubyte", "get_rtol", "get_tolerance", "get_tols", "get_zip_data", "getenv", "has_tvm_ops",
           "is_aarch64_run", "is_cd_run", "is_op_runnable", "list_gpus", "locationError", "mean_check",
           "new_matrix_with_real_eigvals_2d", "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d",
           "new_sym_matrix_with_real_eigvals_2d", "new_sym_matrix_with_real_eigvals_nd", "np_reduce", "numeric_grad",
           "rand_coord_2d", "rand_ndarray", "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "rand_sparse_ndarray",
           "random_arrays", "random_sample", "random_uniform_arrays", "retry", "same", "same_array",
           "same_symbol_structure", "set_default_context", "setenv", "shuffle_csr_column_indices", "simple_forward",
           "use_np", "var_check", "verify_generator"]  # fmt: skip
