from tandem.observe.markup import Html, joined, tag


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "a < b & c", tag("b", "d")) == "<p>a &lt; b &amp; c<b>d</b></p>"


def test_attributes_are_escaped_and_named_as_html_names_them() -> None:
    assert tag("i", class_='"x"', aria_label="<y>") == '<i class="&quot;x&quot;" aria-label="&lt;y&gt;"></i>'


def test_an_element_that_holds_nothing_has_no_end() -> None:
    assert tag("input", name_="token") == '<input name="token">'


def test_text_added_to_markup_is_text_again() -> None:
    assert joined([Html("<b>") + "<i>"]) == "&lt;b&gt;&lt;i&gt;"


def test_text_that_cannot_be_seen_is_written_out() -> None:
    assert joined(["a\u202eb\ud800"]) == "a\\u202eb\\ud800"
