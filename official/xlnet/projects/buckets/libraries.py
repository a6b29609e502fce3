"""The library of a URL's scheme: an fsspec file system such as s3fs or gcsfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from official.xlnet.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    import fsspec

# Extras of this package that install the library of a scheme; others have their own library.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}


def library_of(url: str) -> fsspec.AbstractFileSystem:
    """Returns the fsspec file system of a URL; fsspec keeps one for each process.

    Raises:
      ConfigError: fsspec does not know the scheme, or its library is not installed.
    """
    import fsspec

    scheme = url.partition("://")[0].lower()
    try:
        file_system_class = fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise ConfigError(
            f"{url}: expected a file system that fsspec knows, got {scheme}://"
        ) from None
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        advice = how_to_install(extra) if extra else str(error)
        raise ConfigError(
            f"{url}: the library for {scheme}:// is not installed: {advice}"
        ) from None
    return file_system_class(use_listings_cache=False)
