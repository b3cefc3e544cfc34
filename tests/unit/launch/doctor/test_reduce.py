from tandem.launch.doctor.reduce import bucket_sizes


def test_a_small_model_is_summed_whole_in_buckets_of_a_megabyte() -> None:
    assert bucket_sizes(4 * 2**20, most_bytes=10**9) == [2**18] * 4


def test_a_large_model_is_summed_in_buckets_of_25_megabytes_as_far_as_the_link_allows() -> None:
    assert bucket_sizes(240 * 2**20, most_bytes=60 * 2**20) == [25 * 2**18] * 2


def test_a_very_slow_link_gets_a_part_of_a_bucket() -> None:
    assert bucket_sizes(240 * 2**20, most_bytes=100_000) == [25_000]
