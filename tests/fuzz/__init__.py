"""Coverage-guided fuzzing of the file readers (`make fuzz`); needs atheris, which has wheels for Linux alone."""
