"""Messages between two real processes, and the end of one of them."""

import gc
import sys
from queue import SimpleQueue

import pytest

from tandem.launch import channel
from tandem.launch.channel import GONE, Channel, Message

ECHO = """
from tandem.launch.channel import FarEnd
far = FarEnd()
for message in far.messages():
    far.send({"is": "echo", "of": message})
"""

NOISY = """
import os
from tandem.launch.channel import FarEnd
far = FarEnd()
os.write(1, b"noise {")
far.send({"is": "m"})
"""


class Talk:
    """A channel to a Python program, and what came over it in order."""

    def __init__(self, program: str) -> None:
        self.came: SimpleQueue[Message] = SimpleQueue()
        self.channel = Channel([sys.executable, "-c", program], on_message=self.came.put)

    def next(self) -> Message:
        return self.came.get(timeout=60)


def test_messages_go_there_and_back_in_order() -> None:
    talk = Talk(ECHO)
    sent = [{"do": "count", "number": number, "text": "ü\n"} for number in range(200)]
    for message in sent:
        talk.channel.send(message)
    assert [talk.next() for _ in sent] == [{"is": "echo", "of": message} for message in sent]
    talk.channel.close()
    assert talk.next() == {"is": GONE, "code": 0, "said": ""}


def test_what_was_sent_before_the_close_arrives() -> None:
    talk = Talk(ECHO)
    talk.channel.send({"do": "x", "long": "y" * 300_000})
    talk.channel.close()
    assert len(talk.next()["of"]["long"]) == 300_000
    assert talk.next()["is"] == GONE


def test_a_process_that_is_killed_is_gone_with_its_signal() -> None:
    talk = Talk(ECHO)
    talk.channel.send({"do": "x"})
    talk.next()
    talk.channel.kill()
    assert talk.next() == {"is": GONE, "code": -9, "said": ""}


def test_a_process_that_fails_is_gone_with_what_it_said() -> None:
    talk = Talk("import sys; print('to out', flush=True); sys.exit('to err')")
    gone = talk.next()
    assert (gone["is"], gone["code"]) == (GONE, 1)
    assert sorted(gone["said"].split("\n")) == ["to err", "to out"]


def test_only_the_end_of_much_talk_is_kept() -> None:
    talk = Talk("import sys; [print(number, file=sys.stderr) for number in range(5000)]")
    said = talk.next()["said"].split("\n")
    assert said[-1] == "4999"
    assert len(said) <= 100


@pytest.mark.parametrize("line", ["welcome", "7", "[]", "{}", '{"a": 1}', '{"is": 1, "do": 2}', "{"])
def test_what_is_no_message_is_passed_over(line: str) -> None:
    talk = Talk(f'print({line!r}); print(\'{{"is": "m"}}\')')
    assert talk.next() == {"is": "m"}
    assert talk.next()["said"] == line


def test_what_a_library_prints_there_does_not_get_between_the_messages() -> None:
    talk = Talk(NOISY)
    assert talk.next() == {"is": "m"}
    assert talk.next()["said"] == "noise {"


def test_sending_to_a_process_that_is_gone_or_does_not_read_never_waits_or_fails() -> None:
    talk = Talk("")
    assert talk.next()["is"] == GONE
    deaf = Talk('import time; print(\'{"is": "up"}\', flush=True); time.sleep(1000)')
    deaf.next()
    for _ in range(100):
        talk.channel.send({"do": "x", "long": "y" * 10_000})
        deaf.channel.send({"do": "x", "long": "y" * 10_000})
    deaf.channel.kill()
    assert deaf.next()["is"] == GONE


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", ["", "\\n"])
def test_a_line_that_does_not_end_ends_the_channel_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(channel, "LONGEST_LINE", 1 << 20)
    talk = Talk(
        "import sys, time\n"
        'print(\'{"is": "up"}\', flush=True)\n'
        f"sys.stdout.write('{{\"is\": \"' + 'x' * (3 << 20) + '\"}}{end}'); sys.stdout.flush(); time.sleep(1000)\n"
    )
    assert talk.next() == {"is": "up"}
    gone = talk.next()
    assert (gone["is"], gone["code"], gone["why"]) == (GONE, -9, "it sent a line of more than 1 MiB")
    assert gone["said"].endswith(gone["why"])


@pytest.mark.timeout(60)
def test_errors_without_line_ends_fill_no_memory() -> None:
    said = Talk("import sys; sys.stderr.write('x' * (8 << 20))").next()["said"]
    assert 0 < len(said) < 1 << 20


@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", ["'[' * 1_000_000", "'9' * 10_000", "'{\"is\":' * 50_000"])
def test_what_cannot_be_read_is_passed_over(line: str) -> None:
    talk = Talk(f'print({line}); print(\'{{"is": "m"}}\')')
    assert talk.next() == {"is": "m"}
    assert talk.next()["is"] == GONE


@pytest.mark.timeout(60)
def test_nobody_on_the_other_side_can_say_that_it_is_gone() -> None:
    talk = Talk(
        'import json; print(json.dumps({"is": "gone", "code": [], "said": 7})); print(\'{"is": "m"}\')'
    )
    assert talk.next() == {"is": "m"}
    assert talk.next()["code"] == 0


@pytest.mark.timeout(60)
def test_a_message_that_cannot_be_taken_ends_the_channel_with_a_reason() -> None:
    came: SimpleQueue[Message] = SimpleQueue()

    def take(message: Message) -> None:
        came.put({**message, "number": message["number"] + 1} if message["is"] != GONE else message)

    program = 'print(\'{"is": "m", "number": []}\', flush=True); import time; time.sleep(1000)'
    Channel([sys.executable, "-c", program], on_message=take)
    gone = came.get(timeout=60)
    assert (gone["is"], gone["why"]) == (GONE, "it sent what makes no sense here (TypeError)")


def test_nothing_is_left_open_when_the_process_is_gone() -> None:
    deaf = Talk('import time; print(\'{"is": "up"}\', flush=True); time.sleep(1000)')
    deaf.next()
    deaf.channel.send({"do": "x", "long": "y" * 1_000_000})
    deaf.channel.kill()
    assert deaf.next()["is"] == GONE
    # Warnings are errors: an open pipe that is collected would be one.
    del deaf
    gc.collect()
