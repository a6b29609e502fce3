"""The lengths that inputs of an exported model are padded to."""

from official.xlnet.inference.network.length_buckets import default_lengths


def test_default_lengths_are_powers_of_two_and_the_longest():
    assert default_lengths(100) == (16, 32, 64, 100)
    assert default_lengths(128, shortest=20) == (32, 64, 128)
    assert default_lengths(5) == (5,)
