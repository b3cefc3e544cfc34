import pytest
import torch

from tandem.errors import TandemError
from tandem.parallel.world import SoloWorld, _choose_device, open_world

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_without_a_word_in_the_environment_a_process_is_alone(environment: pytest.MonkeyPatch) -> None:
    world = open_world("cpu", timeout_s=1)
    assert isinstance(world, SoloWorld)
    assert (world.rank, world.size, world.device) == (0, 1, torch.device("cpu"))


def test_a_launcher_of_one_rank_needs_no_meeting(environment: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1",
    }.items():
        environment.setenv(name, value)
    assert isinstance(open_world("cpu", timeout_s=1), SoloWorld)


def test_alone_what_one_has_is_what_all_have() -> None:
    world = SoloWorld(device=torch.device("cpu"))
    tensor = torch.tensor([1.0, 2.0])
    for change in (world.sum, world.largest, world.smallest, world.share):
        change(tensor)
    world.start_sum(tensor).wait()
    assert tensor.tolist() == [1.0, 2.0]
    assert world.gather({"words": ["ä", None, 1.5]}) == [{"words": ["ä", None, 1.5]}]
    world.barrier()
    world.close()


def test_a_rank_that_cannot_be_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("WORLD_SIZE", "2")
    environment.setenv("RANK", "2")
    with pytest.raises(TandemError, match=r"RANK is 2 and WORLD_SIZE 2: ranks are numbered from 0"):
        open_world("cpu", timeout_s=1)


def test_a_number_that_is_none_is_named(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("WORLD_SIZE", "two")
    with pytest.raises(TandemError, match=r"WORLD_SIZE is 'two' in the environment"):
        open_world("cpu", timeout_s=1)


def test_a_worker_without_a_gpu_of_its_own_says_so(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LOCAL_RANK", "3")
    environment.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(TandemError, match=r"Worker 3 of this host .* but 2 can be seen here"):
        open_world("cuda", timeout_s=1)


def test_a_task_that_slurm_gave_a_gpu_of_its_own_takes_that(environment: pytest.MonkeyPatch) -> None:
    environment.setattr(torch.cuda, "device_count", lambda: 1)
    environment.setenv("SLURM_GPUS_PER_TASK", "1")
    environment.setenv("SLURM_LOCALID", "1")
    assert _choose_device("cuda", 1) == torch.device("cuda", 0)
    with pytest.raises(TandemError, match="Worker 2 of this host wants a GPU of its own"):
        _choose_device("cuda", 2)  # started by a task, whose GPU another worker has
    environment.delenv("SLURM_GPUS_PER_TASK")
    with pytest.raises(TandemError, match="Worker 1 of this host wants a GPU of its own"):
        _choose_device("cuda", 1)
