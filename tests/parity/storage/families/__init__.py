"""Storage cases by kind of op: each module defines ``CASES``."""
