"""Shell code that /bin/sh on the login node runs for the portal."""
