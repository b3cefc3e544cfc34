import math
from dataclasses import replace

from rich.console import Console
from tests.unit.observe.story import START_NS
from tests.unit.observe.watch.host_story import described, sampled

from tandem.observe.delivered import Delivered
from tandem.observe.watch.host_rows import HostRows
from tandem.observe.watch.hosts import WatchedHost
from tandem.runlog.event import HostDescribed, HostSampled

SECOND = 1_000_000_000


def host(*samples: HostSampled, told: HostDescribed | None = None) -> WatchedHost:
    held = WatchedHost(name="h1", described=told or described(2))
    for number, sample in enumerate(samples):
        held.add(START_NS + number * SECOND, sample)
    return held


MEASURED = Delivered(bytes_per_s=125e6, is_measured=True)


def drawn(
    held: WatchedHost,
    *,
    width: int = 80,
    rows: int = 1,
    later_s: int = 1,
    link: Delivered | None = MEASURED,
) -> str:
    console = Console(width=width, color_system=None)
    now_ns = START_NS + (len(held.moments) - 1 + later_s) * SECOND
    shown = HostRows(
        hosts=[held], width=width, now_ns=now_ns, ascii_only=False, delivered=lambda _host, _interface: link
    ).draw(rows)
    with console.capture() as capture:
        for each in shown:
            console.print(each)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def busy(*, gpus: int = 2) -> HostSampled:
    return replace(
        sampled(1, gpus=gpus),
        cpu=0.34,
        gpu_utilisation=(1.0, 0.9)[:gpus],
        gpu_temperature_c=(61.0, 64.0)[:gpus],
        sent_bytes_per_s=(5e9, 101.5e6),
        received_bytes_per_s=(5e9, 50e6),
    )


def test_a_row_has_the_mean_of_the_gpus_the_hottest_the_busiest_link_and_the_cpu() -> None:
    assert drawn(host(busy())) == "h1  2 GPUs █            95 %  64 °C  eth0 ↑ 812 Mb/s of 1 Gb/s  cpu 34 %"


def test_the_busier_direction_is_shown() -> None:
    down = replace(busy(), received_bytes_per_s=(0.0, 110e6))
    assert "eth0 ↓ 880 Mb/s of 1 Gb/s" in drawn(host(down))


def test_a_link_that_was_not_measured_has_the_highest_rate_that_was_seen() -> None:
    seen = Delivered(bytes_per_s=105e6, is_measured=False)
    assert "eth0 ↑ 812 Mb/s, max 840 Mb/s  cpu" in drawn(host(busy()), link=seen)
    assert "eth0 ↑ 812 Mb/s  cpu" in drawn(host(busy()), link=None)


def test_what_the_card_claims_stands_beside_what_the_link_delivers() -> None:
    slow = Delivered(bytes_per_s=25e6, is_measured=True)
    held = host(replace(busy(), sent_bytes_per_s=(0.0, 24e6), received_bytes_per_s=(0.0, 1e6)))
    text = drawn(held, width=120, rows=2, link=slow)
    assert "↑ 192 Mb/s █" in text
    assert "of 200 Mb/s (nominal 1 Gb/s)" in text


def test_traffic_within_the_host_is_no_traffic() -> None:
    alone = replace(busy(), sent_bytes_per_s=(5e9, 0.0), received_bytes_per_s=(5e9, 0.0))
    assert "/s" not in drawn(host(alone))


def test_a_gpu_that_is_held_down_is_marked() -> None:
    assert "64 °C!" in drawn(host(replace(busy(), gpu_throttled=("", "heat"))))


def test_a_host_without_gpus_has_its_link_and_cpu() -> None:
    assert drawn(host(busy(gpus=0), told=described(0))) == "h1  eth0 ↑ 812 Mb/s of 1 Gb/s  cpu 34 %"


def test_what_is_not_known_is_a_dash() -> None:
    dark = replace(busy(), gpu_utilisation=(math.nan,) * 2, gpu_temperature_c=(), cpu=math.nan)
    text = drawn(host(dark))
    assert "2 GPUs              –" in text
    assert text.endswith("cpu –")


def test_a_sparkline_holds_the_last_minutes() -> None:
    samples = [replace(busy(), gpu_utilisation=(number / 11,) * 2) for number in range(12)]
    assert "▁▂▂▃▄▄▅▅▆▇▇█" in drawn(host(*samples))


def test_a_host_that_has_gone_quiet_says_so() -> None:
    assert drawn(host(busy()), later_s=95) == "h1  no sample for 1 min 35 s"
    assert drawn(host()) == "h1  no sample yet"


def test_a_host_has_as_much_of_its_name_as_there_is_room_for() -> None:
    held = host(busy())
    held.name = "gpu-node-00.cluster.example.org"
    assert drawn(held, width=120).startswith(f"{held.name}  2 GPUs")
    assert drawn(held, width=40) == "gpu-node-00.c…  2 GPUs █            95 %"


def test_a_wide_terminal_shows_every_gpu_and_both_directions() -> None:
    text = drawn(host(busy()), width=120, rows=2)
    head, gpus = text.splitlines()
    assert "eth0 ↑ 812 Mb/s" in head
    assert "↓ 400 Mb/s" in head
    assert "gpu0 █          100 % 61 °C" in gpus
    assert "gpu1 ▇           90 % 64 °C" in gpus
    assert gpus.count("61/80 GiB") == 2
