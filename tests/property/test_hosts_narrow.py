"""Lists of hosts under each other, and what is no name of a host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openry.sandbox.hosts import canonical, in_both, is_allowed, is_pattern

label = st.sampled_from(["a", "b", "*"])
name = st.builds(lambda labels, top: ".".join([*labels, top]), st.lists(label, max_size=3), label)
port = st.sampled_from(["", ":*", ":22", ":443", ":80"])
patterns = st.lists(st.builds(str.__add__, name, port), max_size=4)
hosts = st.builds(".".join, st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4))


@given(patterns, patterns, hosts, st.sampled_from([22, 80, 443, 8080]))
def test_two_lists_together_allow_what_both_allow(some, others, host, number):
    """Exactly that, whatever the stars and ports."""
    both = in_both(some, others)

    assert is_allowed(host, number, both) == (
        is_allowed(host, number, some) and is_allowed(host, number, others)
    )


@given(st.text(max_size=40), st.integers(0, 70000))
def test_no_text_is_allowed_that_is_no_name(text, number):
    """Whatever is asked for, its canonical name is a name already, or nothing."""
    found = canonical(text)

    assert canonical(found) == found
    if found:
        assert is_pattern(found)
        assert is_allowed(found, 443, [found])
        assert not is_allowed(f"evil{found}", 443, [found])
        assert not is_allowed(f"{found}.evil", 443, [found])
