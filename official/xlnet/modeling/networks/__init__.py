"""The encoder and the recurrent memory.

`model.network` selects the encoder, and the language-model head that belongs to it: XLNet's, or one
of `register_network`. All of them take and return the same, so objectives, records, training step
and tasks are the same.
"""

from official.xlnet.modeling.networks.encoder import Encoder

__all__ = ["Encoder"]
