from tandem.train.seeds import derived_seed


def test_a_seed_is_the_same_for_ever() -> None:
    assert derived_seed(1, "dropout", 2, 3) == 3829333276522255221


def test_every_part_of_the_place_counts() -> None:
    seeds = [
        derived_seed(1, "a", 2, 3),
        derived_seed(2, "a", 2, 3),
        derived_seed(1, "b", 2, 3),
        derived_seed(1, "a", 3, 2),
        derived_seed(1, "a", 23),
        derived_seed(1, "a", 2, 3, 0),
    ]
    assert len(set(seeds)) == len(seeds)


def test_a_seed_is_one_that_torch_takes() -> None:
    assert all(0 <= derived_seed(7, "any", number) < 2**63 for number in range(1000))
