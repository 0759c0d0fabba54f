"""Messages to users by e-mail."""
