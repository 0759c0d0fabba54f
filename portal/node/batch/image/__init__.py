"""Users' own images, on the node and with the user's rights: checked, pulled once, cached."""


class ImageError(Exception):
    """An image cannot be used; the text is for the person who chose it.

    It is one printable line, since it may quote a registry or a file.
    """

    def __init__(self, text: str) -> None:
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        super().__init__("".join(shown))
