"""Operations without weights: dropout, random numbers, compiled kernels, projections."""
