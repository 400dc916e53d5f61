"""Speed, measured as ratios in one run against real MXNet. `make bench` prints a table; nothing here is a unit test."""
