"""`python -m symjax` is the command `symjax`."""

from symjax.cli import main

if __name__ == "__main__":
    main(prog_name="symjax")
