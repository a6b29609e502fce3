"""Absorbing diffusion in the section `objective` of the configuration; imports no TensorFlow."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.objective import ObjectiveConfig


@register_settings("objective", kind=("absorbing_diffusion",))
class AbsorbingDiffusionConfig(ObjectiveConfig):
    """`kind` may be `absorbing_diffusion`, which masks any number of tokens and no others."""

    unread_with = {
        "mask_share": ("kind", ("absorbing_diffusion",)),
        "random_share": ("kind", ("absorbing_diffusion",)),
        "left_to_right_share": ("kind", ("absorbing_diffusion",)),
    }

    @property
    def predicts_masked(self) -> bool:
        return True

    @property
    def predicts_all(self) -> bool:
        return True
