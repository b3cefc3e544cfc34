import re
from base64 import b64encode
from hashlib import sha256

from tandem.observe.markup import tag
from tandem.observe.page import build_page, figure_box


def test_only_the_scripts_of_the_page_may_run() -> None:
    page = build_page(title="t", body=tag("p", "hello")).decode()
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert len(scripts) == 2
    allowed = re.findall(r"sha256-([^']*)", policy[1])
    assert allowed == [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert "default-src 'none'" in policy[1]
    assert not re.search(r"script-src[^;]*unsafe", policy[1])


def test_nothing_is_fetched() -> None:
    page = build_page(title="t", body=tag("p", "hello")).decode()
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=|url\(|@import|https?:", outside)


def test_the_title_is_text() -> None:
    assert b"<title>&lt;/title&gt;</title>" in build_page(title="</title>", body=tag("p"))


def test_data_of_a_figure_cannot_end_its_script() -> None:
    figure = figure_box(
        "f", figure={"data": ["</script><script>alert(1)</script>"]}, alternative="a", meaning="m"
    )
    assert figure.count("</script>") == 1
    assert "\\u003c/script>" in figure
