"""Namespace shared with tf-models-official: `official.xlnet` is ours, the rest is theirs."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
