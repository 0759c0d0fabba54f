"""Copies, moves, deletes and changes permissions of many files, with progress and cancelling."""
