"""Messages from administrators to all users: announcements and maintenance. Pure."""
