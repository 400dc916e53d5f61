"""_contrib_interleaved_matmul_*."""

from typing import Any

from tests.parity.case import Case, op_case

P = "_contrib_interleaved_matmul_"
H = {"heads": 2}


def cases(**options: Any) -> list[Case]:
    """The four operators."""
    return [
        op_case(P + "selfatt_qk", {"queries_keys_values": (3, 2, 12)}, H, **options),
        op_case(P + "selfatt_valatt", {"queries_keys_values": (3, 2, 12), "attention": (4, 3, 3)}, H,
                infer_from=("queries_keys_values", "attention"), **options),
        op_case(P + "encdec_qk", {"queries": (3, 2, 4), "keys_values": (5, 2, 8)}, H,
                infer_from=("queries", "keys_values"),
                **options),
        op_case(P + "encdec_valatt", {"keys_values": (5, 2, 8), "attention": (4, 3, 5)}, H,
                infer_from=("keys_values", "attention"),
                **options),
    ]  # fmt: skip


CASES: list[Case] = [
    *cases(),
    *cases(dtype="float64", better=True),
    *cases(grad_req="add"),
    op_case(P + "selfatt_qk", {"queries_keys_values": (3, 2, 6)}, {"heads": 1}, infer=[
        {"queries_keys_values": (0, 2, 6)}, {"queries_keys_values": (3, 0, 6)}]),
]  # fmt: skip
