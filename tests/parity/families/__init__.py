"""One module for each family of ops; each defines ``CASES: list[Case]``."""
