"""The answer module of MT-DNN: a stochastic answer network."""
