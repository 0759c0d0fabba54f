"""What /bin/sh on the login node runs for the portal."""
