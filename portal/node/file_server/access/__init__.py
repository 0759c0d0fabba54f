"""Access to storage folders: access control lists (POSIX, NFSv4), and the folders of others."""
