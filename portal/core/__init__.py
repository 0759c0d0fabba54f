"""What Slipway knows, without doing anything.

Purity rule: nothing in this folder opens a socket, a file, a database or a process, reads a clock
or draws a random number. What it needs of those comes in as an argument. import-linter checks the
imports; reviewers check the rest.
"""
