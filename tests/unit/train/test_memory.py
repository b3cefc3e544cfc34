"""Memory that was used once is used again."""

import subprocess
import sys

PROGRAM = """
import resource, torch
from tandem.train.memory import keep_freed_memory
torch.set_num_threads(1)
{call}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(12):
    torch.ones(2**24)
before = faults()
for _ in range(4):
    torch.ones(2**24)
print(faults() - before)
"""


def page_faults(call: str) -> int:
    program = [sys.executable, "-c", PROGRAM.format(call=call)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


def test_tensors_of_the_same_size_come_without_page_faults() -> None:
    assert page_faults("keep_freed_memory()") < page_faults("") / 10
