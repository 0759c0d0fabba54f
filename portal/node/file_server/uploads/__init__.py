"""Uploads that go on after an interruption (tus 1.0.0)."""
