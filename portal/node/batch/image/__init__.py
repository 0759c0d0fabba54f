"""People's own images, on the node and as their user: checked, pulled once, kept in a cache."""


class ImageError(Exception):
    """An image cannot be used; the text is for the person who chose it.

    It is one line that can be shown: a registry's or a file's own words may be part of it.
    """

    def __init__(self, text: str) -> None:
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        super().__init__("".join(shown))
