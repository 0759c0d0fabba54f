"""WebDAV (class 1) for programs such as rclone."""
