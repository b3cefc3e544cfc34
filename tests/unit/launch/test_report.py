from tandem.launch.report import Reports, send_report


def test_the_first_report_of_each_rank_arrives_once() -> None:
    with Reports() as reports:
        send_report(reports.address, rank=1, kind="sentence", message="Erste – zuerst.")
        send_report(reports.address, rank=1, kind="peer", message="second")
        send_report(reports.address, rank=0, kind="unexpected", message="x" * 1_000_000)
        received = reports.received()
        assert received[1].message == "Erste – zuerst."
        assert received[1].time_s <= received[0].time_s
        assert 0 < len(received[0].message) < 1_000_000
        assert not reports.received()


def test_a_report_to_nobody_is_no_error() -> None:
    with Reports() as reports:
        address = reports.address
    send_report(address, rank=0, kind="peer", message="hello")
