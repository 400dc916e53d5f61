"""`python -m tests.fuzz` is `python -m tests.fuzz.run`."""

from tests.fuzz.run import main

main()
