"""Operator families: in each module an op's declaration and its lowering rule stand in the same place."""
