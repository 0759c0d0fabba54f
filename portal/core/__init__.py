"""Domain model and decisions, without side effects.

Purity rule: nothing in this folder opens a socket, a file, a database or a process, reads a clock
or draws a random number; such values are passed in as arguments. import-linter checks the imports;
reviewers check the rest.
"""
