"""What belongs to storage areas: who has access to a folder, and how much may be stored."""
