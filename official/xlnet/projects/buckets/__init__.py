"""Files in buckets and on other remote file systems of fsspec, by URL."""
