"""The portal at the size of a centre: which of a class, open tabs, sessions and routes it serves.

`python -m bench.centre` says in its help what it does to the cluster and what it prints.
"""
