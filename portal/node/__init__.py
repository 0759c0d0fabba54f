"""Programs that run on other machines: standard library of Python 3.9 only."""
