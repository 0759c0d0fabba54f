"""The desktop app: an X server that draws into the browser, and the image's desktop on it."""
