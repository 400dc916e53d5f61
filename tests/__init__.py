"""The tests of symjax."""
