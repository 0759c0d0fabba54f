"""What administrators tell everybody: announcements and maintenance. Pure."""
