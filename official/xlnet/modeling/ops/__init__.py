"""Operations without weights: dropout, random numbers, compiled kernels, projections."""

from official.xlnet.modeling.ops import gradient_registry as gradient_registry
