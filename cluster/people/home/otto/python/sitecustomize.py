"""What I once wanted in every Python."""

raise ImportError("this is otto's own sitecustomize")
