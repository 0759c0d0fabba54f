"""People's own images, on the node and as their user: checked, pulled once, kept in a cache."""


class ImageError(Exception):
    """An image cannot be used; the text is for the person who chose it."""
