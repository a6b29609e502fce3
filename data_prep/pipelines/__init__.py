"""The passes of `xlnet prepare`, on local processes or on Beam."""
