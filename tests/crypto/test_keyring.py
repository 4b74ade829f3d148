"""Sealed values open only in their own context, with the right key and unaltered."""

import base64
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.crypto.keyring import CannotOpen, KeyProblem, Keyring, SealContext, kid_of
from tests.lengths import rounds

CONTEXT = SealContext(
    tenant="ten_1", table="credentials", record="crd_1", field="secret", version=3
)
SECRET = b"hunter2"
K1 = "k1:" + base64.b64encode(b"a" * 32).decode()
K2 = "k2:" + base64.b64encode(b"b" * 32).decode()
HEAD = len(b"\x01\x02k1")
WRAPPED = 12 + 32 + 16

contexts = st.builds(
    SealContext,
    tenant=st.text(max_size=40),
    table=st.text(max_size=40),
    record=st.text(max_size=40),
    field=st.text(max_size=40),
    version=st.integers(0, 2**63),
)


@pytest.fixture
def keyring() -> Keyring:
    return Keyring.parse(K1)


# Sealing and opening


@given(content=st.binary(max_size=2000), context=contexts)
@settings(max_examples=rounds(25, 100), deadline=None)
def test_a_sealed_value_opens_unchanged(content: bytes, context: SealContext) -> None:
    keyring = Keyring.parse(K1)
    assert keyring.open(keyring.seal(content, context), context) == content


def test_an_empty_value_can_be_sealed(keyring: Keyring) -> None:
    assert keyring.open(keyring.seal(b"", CONTEXT), CONTEXT) == b""


def test_two_seals_of_one_value_share_nothing(keyring: Keyring) -> None:
    first, second = keyring.seal(SECRET, CONTEXT), keyring.seal(SECRET, CONTEXT)
    assert not set(_windows(first[HEAD:])) & set(_windows(second[HEAD:]))


def _windows(data: bytes) -> list[bytes]:
    return [data[start : start + 8] for start in range(len(data) - 7)]


def test_a_sealed_value_does_not_contain_the_plaintext(keyring: Keyring) -> None:
    assert SECRET not in keyring.seal(SECRET, CONTEXT)


def test_the_first_key_seals(keyring: Keyring) -> None:
    assert kid_of(Keyring.parse(f"{K2},{K1}").seal(SECRET, CONTEXT)) == "k2"


def test_an_older_key_still_opens(keyring: Keyring) -> None:
    assert Keyring.parse(f"{K2},{K1}").open(keyring.seal(SECRET, CONTEXT), CONTEXT) == SECRET


# Moved


def test_a_moved_value_does_not_open(keyring: Keyring, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, str | int]] = [
        {"tenant": "ten_2"},
        {"table": "tools"},
        {"record": "crd_2"},
        {"field": "other"},
        {"version": 4},
        {"tenant": ""},
        {"tenant": "TEN_1"},
    ]
    for change in cases:
        with subtests.test(change=change):
            sealed = keyring.seal(SECRET, CONTEXT)
            with pytest.raises(CannotOpen):
                keyring.open(sealed, msgspec.structs.replace(CONTEXT, **change))


def test_contexts_with_the_same_concatenation_differ(keyring: Keyring) -> None:
    sealed = keyring.seal(SECRET, SealContext(tenant="t", table="ab", record="c", field="d"))
    with pytest.raises(CannotOpen):
        keyring.open(sealed, SealContext(tenant="t", table="a", record="bc", field="d"))


@given(first=contexts, second=contexts)
@settings(max_examples=rounds(15, 50), deadline=None)
def test_a_value_opens_only_in_an_equal_context(first: SealContext, second: SealContext) -> None:
    keyring = Keyring.parse(K1)
    sealed = keyring.seal(SECRET, first)
    try:
        is_open = keyring.open(sealed, second) == SECRET
    except CannotOpen:
        is_open = False
    assert is_open is (first == second)


def test_the_content_of_one_value_does_not_open_under_the_data_key_of_another(
    keyring: Keyring,
) -> None:
    first, second = keyring.seal(b"first", CONTEXT), keyring.seal(b"second", CONTEXT)
    cut = HEAD + WRAPPED
    with pytest.raises(CannotOpen):
        keyring.open(first[:cut] + second[cut:], CONTEXT)


# Altered


def _flip_each_bit(sealed: bytes) -> list[bytes]:
    return [
        sealed[:at] + bytes([sealed[at] ^ 1 << bit]) + sealed[at + 1 :]
        for at in range(len(sealed))
        for bit in range(8)
    ]


def _opens(attempt: Callable[[bytes, SealContext], bytes], sealed: bytes) -> bool:
    """Returns False for CannotOpen; any other error fails the test."""
    try:
        attempt(sealed, CONTEXT)
    except CannotOpen:
        return False
    return True


def test_no_flipped_bit_goes_unnoticed(keyring: Keyring) -> None:
    assert not any(
        _opens(keyring.open, bad) for bad in _flip_each_bit(keyring.seal(SECRET, CONTEXT))
    )


def test_no_flipped_bit_goes_unnoticed_where_it_names_another_known_key() -> None:
    keyring = Keyring.parse(f"{K1},{K2},k0:{K1[3:]},kq:{K2[3:]}")
    assert not any(
        _opens(keyring.open, bad) for bad in _flip_each_bit(keyring.seal(SECRET, CONTEXT))
    )


def test_no_replaced_byte_goes_unnoticed(keyring: Keyring, subtests: pytest.Subtests) -> None:
    for byte in (0x00, 0xFF):
        with subtests.test(byte=byte):
            sealed = keyring.seal(SECRET, CONTEXT)
            replaced = [
                sealed[:at] + bytes([byte]) + sealed[at + 1 :]
                for at in range(len(sealed))
                if sealed[at] != byte
            ]
            assert not any(_opens(keyring.open, bad) for bad in replaced)


def test_no_truncated_value_opens(keyring: Keyring) -> None:
    sealed = keyring.seal(SECRET, CONTEXT)
    assert not any(_opens(keyring.open, sealed[:length]) for length in range(len(sealed)))


def test_a_value_with_bytes_added_does_not_open(keyring: Keyring) -> None:
    with pytest.raises(CannotOpen):
        keyring.open(keyring.seal(SECRET, CONTEXT) + b"\0", CONTEXT)


@given(st.binary(max_size=300))
@settings(max_examples=rounds(25, 100), deadline=None)
def test_noise_does_not_open(noise: bytes) -> None:
    assert not _opens(Keyring.parse(K1).open, b"\x01\x02k1" + noise)


@given(st.binary(max_size=300))
@settings(max_examples=rounds(25, 100), deadline=None)
def test_noise_names_no_key_or_a_text(noise: bytes) -> None:
    try:
        assert isinstance(kid_of(noise), str)
    except CannotOpen:
        return


# Other keys


def test_an_unknown_key_does_not_open(keyring: Keyring) -> None:
    with pytest.raises(CannotOpen, match="k1"):
        Keyring.parse(K2).open(keyring.seal(SECRET, CONTEXT), CONTEXT)


def test_another_key_of_the_same_name_does_not_open(keyring: Keyring) -> None:
    impostor = Keyring.parse(f"k1:{K2[3:]}")
    with pytest.raises(CannotOpen):
        impostor.open(keyring.seal(SECRET, CONTEXT), CONTEXT)


def test_an_error_does_not_contain_the_value(keyring: Keyring) -> None:
    with pytest.raises(CannotOpen) as raised:
        keyring.open(
            keyring.seal(SECRET, CONTEXT), msgspec.structs.replace(CONTEXT, record="crd_2")
        )
    assert SECRET.decode() not in str(raised.value)


# Rotation


@given(content=st.binary(max_size=500), context=contexts)
@settings(max_examples=rounds(15, 50), deadline=None)
def test_a_rewrapped_value_opens_unchanged(content: bytes, context: SealContext) -> None:
    sealed = Keyring.parse(K1).seal(content, context)
    rewrapped = Keyring.parse(f"{K2},{K1}").rewrap(sealed, context)
    assert Keyring.parse(K2).open(rewrapped, context) == content


def test_a_rewrapped_value_names_the_active_key(keyring: Keyring) -> None:
    rewrapped = Keyring.parse(f"{K2},{K1}").rewrap(keyring.seal(SECRET, CONTEXT), CONTEXT)
    assert kid_of(rewrapped) == "k2"


def test_rewrapping_does_not_change_the_content(keyring: Keyring) -> None:
    sealed = keyring.seal(SECRET, CONTEXT)
    rewrapped = Keyring.parse(f"{K2},{K1}").rewrap(sealed, CONTEXT)
    cut = HEAD + WRAPPED
    assert rewrapped[cut:] == sealed[cut:]


def test_rewrapping_changes_the_whole_wrap(keyring: Keyring) -> None:
    sealed = keyring.seal(SECRET, CONTEXT)
    rewrapped = Keyring.parse(f"{K2},{K1}").rewrap(sealed, CONTEXT)
    cut = HEAD + WRAPPED
    assert not set(_windows(rewrapped[HEAD:cut])) & set(_windows(sealed[HEAD:cut]))


def test_the_old_key_alone_does_not_open_a_rewrapped_value(keyring: Keyring) -> None:
    rewrapped = Keyring.parse(f"{K2},{K1}").rewrap(keyring.seal(SECRET, CONTEXT), CONTEXT)
    with pytest.raises(CannotOpen):
        keyring.open(rewrapped, CONTEXT)


def test_a_value_of_the_active_key_does_not_change(keyring: Keyring) -> None:
    sealed = keyring.seal(SECRET, CONTEXT)
    assert keyring.rewrap(sealed, CONTEXT) == sealed


def test_a_moved_value_cannot_be_rewrapped(keyring: Keyring) -> None:
    sealed = keyring.seal(SECRET, CONTEXT)
    with pytest.raises(CannotOpen):
        Keyring.parse(f"{K2},{K1}").rewrap(sealed, msgspec.structs.replace(CONTEXT, tenant="ten_2"))


def test_no_flipped_bit_in_the_wrap_survives_rewrapping(keyring: Keyring) -> None:
    new_keyring = Keyring.parse(f"{K2},{K1}")
    flipped = _flip_each_bit(keyring.seal(SECRET, CONTEXT))[: 8 * (HEAD + WRAPPED)]
    # If a flipped name is the active key's, rewrap returns the value, which then does not open.
    assert not any(
        _opens(new_keyring.rewrap, bad) and _opens(new_keyring.open, bad) for bad in flipped
    )


# Derived keys


def test_a_derived_key_differs_by_purpose_subject_and_root_key() -> None:
    keyring = Keyring.parse(f"{K1},{K2}")
    derived = {
        keyring.derive("k1", "tenant", "ten_1"),
        keyring.derive("k1", "tenant", "ten_2"),
        keyring.derive("k1", "tokens", "ten_1"),
        keyring.derive("k2", "tenant", "ten_1"),
    }
    assert len(derived) == 4


def test_a_derived_key_is_the_same_in_every_process() -> None:
    first, second = Keyring.parse(K1), Keyring.parse(f"{K2},{K1}")
    assert first.derive("k1", "tenant", "a") == second.derive("k1", "tenant", "a")


def test_purpose_and_subject_are_separated(keyring: Keyring) -> None:
    assert keyring.derive("k1", "ab", "c") != keyring.derive("k1", "a", "bc")


def test_a_derived_key_has_256_bits(keyring: Keyring) -> None:
    assert len(keyring.derive("k1", "tenant", "ten_1")) == 32


def test_the_root_key_itself_is_never_derived(keyring: Keyring) -> None:
    assert keyring.derive("k1", "", "") != b"a" * 32


def test_nothing_is_derived_from_an_unknown_key(keyring: Keyring) -> None:
    with pytest.raises(CannotOpen):
        keyring.derive("k9", "tenant", "ten_1")


# Reading the root keys


def test_the_keys_are_read_in_order() -> None:
    assert Keyring.parse(f" {K2} , {K1} ,").kids == ["k2", "k1"]


def test_a_generated_key_can_be_read() -> None:
    assert Keyring.parse(Keyring.generate("k7")).active == "k7"


def test_no_two_generated_keys_are_the_same() -> None:
    assert Keyring.generate("k1") != Keyring.generate("k1")


_CASES: dict[str, str] = {
    "nothing": "",
    "only commas": " , ",
    "no colon": "k1",
    "no name": K1[3:],
    "an empty name": f":{K1[3:]}",
    "no key": "k1:",
    "a long name": "k" * 256 + K1[2:],
    "short": "k1:" + base64.b64encode(b"a" * 31).decode(),
    "the second short": f"{K1},k2:YWJj",
    "the same twice": f"{K1},{K1}",
    "a name twice": f"{K1},k1:{K2[3:]}",
    "not base64": "k1:" + "!" * 44,
    "cut base64": K1[:-1],
    "a space inside": f"{K1[:9]} {K1[9:]}",
    "a stray character inside": f"{K1[:9]}!{K1[9:]}",
    "the alphabet for URLs": "k1:" + "-_" * 22,
    "not ASCII": "k1:" + "\u00e9" * 44,
}


def test_a_wrong_list_of_keys_is_refused(subtests: pytest.Subtests) -> None:
    for name, text in _CASES.items():
        with subtests.test(name), pytest.raises(KeyProblem):
            Keyring.parse(text)


def test_a_refusal_names_the_key_but_does_not_show_it(subtests: pytest.Subtests) -> None:
    for encoded in ["aHVudGVyMmh1bnRlcjI=", "aHVudGVyMmh1bnRlcjI!", "aHVudGVyMmh1bnRlcjI"]:
        with subtests.test(encoded=encoded):
            with pytest.raises(KeyProblem, match="k1") as raised:
                Keyring.parse(f"k1:{encoded}")
            assert encoded not in str(raised.value)


def test_a_keyring_shows_no_key(keyring: Keyring) -> None:
    assert "aaaa" not in repr(keyring)
