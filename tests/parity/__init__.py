"""Parity of symjax with real MXNet 1.9.1: cases, recording, comparison."""
