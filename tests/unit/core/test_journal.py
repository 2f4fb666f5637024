"""Append-only JSONL: what a reader and a follower notice (docs/specs/acp.md §1, §6)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import files, journal
from core.files import LINE_CAP, Root, sha256
from core.finding import Refused
from core.journal import DEPTH_CAP, EMPTY, Follower, Mark, decode, encode, prefix_matches, read

LOG = "log.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    with Root(tmp_path) as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / LOG


def records(*numbers: int) -> bytes:
    return b"".join(encode({"seq": number}) for number in numbers)


def seqs(lines: tuple[journal.Line, ...]) -> list[int | None]:
    return [line.record.get("seq") if line.record else None for line in lines]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters()), JSON))
def test_a_record_survives_and_stays_one_line(record: dict[str, object]) -> None:
    line = encode(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line.decode("utf-8").splitlines()) == 1
    assert decode(line) == (record, None)


def test_separators_are_written_escaped() -> None:
    line = encode({"summary": "a\u0085b\u2028c\u2029d é 漢"})
    assert line == '{"summary":"a\\u0085b\\u2028c\\u2029d é 漢"}\n'.encode()
    assert decode(encode({"lone": "\ud800"})) == ({"lone": "\ud800"}, None)
    with pytest.raises(ValueError, match="Out of range float"):
        encode({"x": float("nan")})


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "invalid JSON"),
        (b"[1]", "event must be an object"),
        (b"null", "event must be an object"),
        (b'"text"', "event must be an object"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a": "\xe9"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "invalid JSON"),
        (b"{}{}", "invalid JSON"),
        (b"\0\0\0\0", "invalid JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "invalid JSON"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":"' + b"x" * LINE_CAP + b'"}', "longer than"),
        (b"", "invalid JSON"),
    ],
    ids=range(17),
)
def test_a_line_that_is_no_record_says_why(raw: bytes, reason: str) -> None:
    record, problem = decode(raw)
    assert record is None
    assert problem is not None
    assert reason in problem
    assert "\n" not in problem


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_reason(raw: bytes) -> None:
    record, problem = decode(raw)
    assert (record is None) == (problem is not None)


def test_depth_counts_structure_only() -> None:
    deep = b'{"a":' + b"[" * (DEPTH_CAP - 1) + b"]" * (DEPTH_CAP - 1) + b"}"
    assert decode(deep)[0] is not None
    assert decode(b'{"a":' + b"[" * DEPTH_CAP + b"]" * DEPTH_CAP + b"}")[1] == "nested too deeply"
    flat = json.dumps({"text": '\\"[{' * 1000, "list": [[]] * 1000}).encode()
    assert decode(flat)[0] is not None


def test_reading_numbers_and_offsets(root: Root, log: Path) -> None:
    log.write_bytes(b'{"seq":1}\n\n  \n{"seq":2}\nrubbish\n{"seq":3}\n')
    made = read(root, LOG)
    assert [(line.number, line.offset) for line in made.lines] == [(1, 0), (4, 14), (5, 24), (6, 32)]
    assert seqs(made.lines) == [1, 2, None, 3]
    assert made.pending == b""
    assert made.mark.lines == 6
    assert made.mark.digest == sha256(log.read_bytes())
    assert all(log.read_bytes()[line.offset :].startswith(line.raw) for line in made.lines)


def test_carriage_returns_do_not_disturb(root: Root, log: Path) -> None:
    log.write_bytes(records(1, 2).replace(b"\n", b"\r\n"))
    assert seqs(read(root, LOG).lines) == [1, 2]


def test_lines_end_at_newlines_only(root: Root, log: Path) -> None:
    log.write_bytes('{"seq":1,"s":"a\u2028b\u0085c\x1c"}\n'.replace("\x1c", "\\u001c").encode())
    assert seqs(read(root, LOG).lines) == [1]


@pytest.mark.parametrize("tail", [b'{"seq":2', b'{"seq":2}', b"\xc3", b"\0" * 9, b" "])
def test_an_unterminated_line_is_pending(root: Root, log: Path, tail: bytes) -> None:
    log.write_bytes(records(1) + tail)
    made = read(root, LOG)
    assert seqs(made.lines) == [1]
    assert made.pending == tail
    assert made.mark.offset == len(records(1))
    assert made.mark.digest == sha256(records(1))


def test_missing_and_unreadable_logs_are_problems(root: Root, log: Path) -> None:
    missing = read(root, LOG)
    assert missing.problem is not None
    assert missing.problem.code == "file_missing"
    os.mkfifo(log)
    fifo = read(root, LOG)
    assert fifo.problem is not None
    assert fifo.problem.code == "not_a_file"
    assert fifo.lines == ()


def test_a_line_of_a_gigabyte_is_damaged_and_costs_no_memory(root: Root, log: Path) -> None:
    """The bytes of the hole are read, but only a beginning of them is kept."""
    before, after = records(1), records(2)
    with log.open("wb") as handle:
        handle.write(before)
        handle.truncate(512 * 1024**2)
        handle.seek(0, os.SEEK_END)
        handle.write(b"\n" + after + b"\0" * (3 * LINE_CAP))
    made = read(root, LOG)
    assert seqs(made.lines) == [1, None, 2]
    assert made.lines[1].problem == f"longer than {LINE_CAP} bytes"
    assert len(made.lines[1].raw) <= LINE_CAP
    assert made.mark.lines == 3
    assert made.mark.offset == 512 * 1024**2 + 1 + len(after)
    assert len(made.pending) == LINE_CAP


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_the_cap_is_exact(root: Root, log: Path, excess: int) -> None:
    """A line may have 1 MiB, its line end included."""
    empty = len(encode({"s": ""}))
    line = encode({"s": "x" * (LINE_CAP - empty + excess)})
    assert len(line) == LINE_CAP + excess
    log.write_bytes(line + records(2))
    made = read(root, LOG)
    assert (made.lines[0].record is None) == (excess > 0)
    assert made.lines[1].record == {"seq": 2}


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(1, 40))
def test_chunks_do_not_matter(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], chunk: int) -> None:
    """However the bytes arrive, the same lines come out."""
    folder = tmp_path_factory.mktemp("chunks")
    data = b"\n".join([*pieces, *(encode({"n": n}).strip() for n in range(3)), b""])
    (folder / LOG).write_bytes(data)
    before = journal._CHUNK
    with Root(folder) as root:
        whole = read(root, LOG)
        journal._CHUNK = chunk
        try:
            small = read(root, LOG)
        finally:
            journal._CHUNK = before
    assert small == whole


def test_following_growth_reads_only_what_is_new(root: Root, log: Path) -> None:
    log.write_bytes(records(1))
    follower = Follower(root, LOG)
    assert seqs(follower.poll().lines) == [1]
    assert follower.poll() == journal.News((), b"", None)
    with log.open("ab") as handle:
        handle.write(records(2, 3))
    news = follower.poll()
    assert seqs(news.lines) == [2, 3]
    assert [line.number for line in news.lines] == [2, 3]
    assert news.reset is None
    assert follower.mark == read(root, LOG).mark


def test_what_is_pending_stays_pending_until_it_is_ended(root: Root, log: Path) -> None:
    log.write_bytes(records(1) + b'{"seq":')
    follower = Follower(root, LOG)
    assert follower.poll().pending == b'{"seq":'
    assert follower.poll().pending == b'{"seq":'
    with log.open("ab") as handle:
        handle.write(b"2}\n")
    news = follower.poll()
    assert seqs(news.lines) == [2]
    assert news.pending == b""
    assert news.reset is None
    assert follower.poll().pending == b""


def test_truncation_is_noticed(root: Root, log: Path) -> None:
    log.write_bytes(records(1, 2, 3))
    follower = Follower(root, LOG)
    follower.poll()
    os.truncate(log, len(records(1)))
    news = follower.poll()
    assert news.reset == "truncated"
    assert seqs(news.lines) == [1]


def test_a_rewrite_of_the_same_size_is_noticed(root: Root, log: Path) -> None:
    log.write_bytes(records(1, 2))
    follower = Follower(root, LOG)
    follower.poll()
    seen = log.stat().st_mtime_ns
    with log.open("r+b") as handle:
        handle.write(records(7))
    os.utime(log, ns=(seen, seen + 1))
    news = follower.poll()
    assert news.reset == "rewritten"
    assert seqs(news.lines) == [7, 2]


def test_a_rewritten_beginning_is_noticed_when_the_log_grew(root: Root, log: Path) -> None:
    log.write_bytes(records(1, 2))
    follower = Follower(root, LOG)
    follower.poll()
    log.write_bytes(records(2, 1, 3))
    news = follower.poll()
    assert news.reset == "rewritten"
    assert seqs(news.lines) == [2, 1, 3]


@pytest.mark.parametrize(("content", "reset"), [(records(1, 2, 3), None), (records(5, 6, 7), "replaced")])
def test_another_file_under_the_name(root: Root, log: Path, content: bytes, reset: str | None) -> None:
    """An editor that saves by renaming makes a new file; what counts is whether the beginning is the same."""
    log.write_bytes(records(1, 2))
    follower = Follower(root, LOG)
    follower.poll()
    other = log.with_suffix(".new")
    other.write_bytes(content)
    other.replace(log)
    news = follower.poll()
    assert news.reset == reset
    assert seqs(news.lines) == ([3] if reset is None else [5, 6, 7])


def test_deletion_and_recreation(root: Root, log: Path) -> None:
    log.write_bytes(records(1))
    follower = Follower(root, LOG)
    follower.poll()
    log.unlink()
    gone = follower.poll()
    assert gone.reset == "gone"
    assert gone.problem is not None
    assert gone.problem.code == "file_missing"
    assert follower.poll().reset is None
    assert follower.mark == EMPTY
    log.write_bytes(records(4, 5))
    back = follower.poll()
    assert seqs(back.lines) == [4, 5]
    assert [line.number for line in back.lines] == [1, 2]


def test_a_log_that_becomes_a_fifo_is_gone(root: Root, log: Path) -> None:
    log.write_bytes(records(1))
    follower = Follower(root, LOG)
    follower.poll()
    log.unlink()
    os.mkfifo(log)
    news = follower.poll()
    assert news.reset == "gone"
    assert news.problem is not None
    assert news.problem.code == "not_a_file"


def test_beyond_the_cap_the_end_of_the_prefix_is_compared(root: Root, log: Path) -> None:
    log.write_bytes(records(*range(1, 50)))
    follower = Follower(root, LOG, verify_cap=100)
    follower.poll()
    with log.open("ab") as handle:
        handle.write(records(50))
    assert follower.poll().reset is None
    data = log.read_bytes()
    log.write_bytes(data.replace(b'{"seq":50}', b'{"seq":99}') + records(51))
    assert follower.poll().reset == "rewritten"


@settings(max_examples=80)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.binary(max_size=12)),
            st.tuples(st.just("line"), st.integers(0, 9)),
            st.tuples(st.just("cut"), st.integers(0, 60)),
            st.tuples(st.just("write"), st.lists(st.integers(0, 9), max_size=4)),
            st.tuples(st.just("remove"), st.none()),
        ),
        max_size=12,
    )
)
def test_a_follower_knows_what_a_fresh_reader_knows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]]
) -> None:
    """Whatever happens to a file, the lines that a follower collected are those that stand there."""
    folder = tmp_path_factory.mktemp("follow")
    log = folder / LOG
    with Root(folder) as root:
        follower = Follower(root, LOG)
        known: list[bytes] = []
        for number, (act, argument) in enumerate(steps):
            match act, argument:
                case "append", bytes(data):
                    with log.open("ab") as handle:
                        handle.write(data)
                case "line", int(seq):
                    with log.open("ab") as handle:
                        handle.write(records(seq))
                case "cut", int(size) if log.exists():
                    os.truncate(log, min(size, log.stat().st_size))
                case "write", list(numbers):
                    log.write_bytes(records(*numbers))
                case "remove", _:
                    log.unlink(missing_ok=True)
            if log.exists():
                # The kernel's clock is coarse; two writes within one tick are not what is tested here.
                os.utime(log, ns=(number, number))
            news = follower.poll()
            if news.reset is not None:
                known.clear()
            known += [line.raw for line in news.lines]
            now = read(root, LOG)
            assert known == [line.raw for line in now.lines]
            assert news.pending == now.pending


def test_marks(root: Root, log: Path) -> None:
    log.write_bytes(records(1, 2, 3))
    mark = Mark(0, len(records(1, 2)), 2, sha256(records(1, 2)))
    assert prefix_matches(root, LOG, mark)
    assert not prefix_matches(root, LOG, Mark(0, 10_000, 2, mark.digest))
    assert not prefix_matches(root, LOG, Mark(0, mark.offset, 2, sha256(b"other")))
    assert not prefix_matches(root, "missing", mark)


def test_a_log_of_holes_costs_nothing(root: Root, log: Path) -> None:
    """Its length is a finding at once, for who reads it anew and for who follows it, and no accusation of rewriting."""
    log.write_bytes(records(1))
    follower = Follower(root, LOG)
    follower.poll()
    os.truncate(log, 8 * 1024**4)
    for news in (follower.poll(), follower.poll()):
        assert news.problem is not None
        assert news.problem.code == "file_too_large"
        assert news.reset in ("gone", None)
    assert read(root, LOG).problem == news.problem
    with pytest.raises(Refused, match="at most"):
        journal.terminated(root, LOG)
    log.write_bytes(records(1, 2))
    assert seqs(follower.poll().lines) == [1, 2]


def test_a_log_of_too_many_lines_is_read_once(root: Root, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LINES_CAP", 3)
    log.write_bytes(records(1, 2, 3))
    follower = Follower(root, LOG)
    assert seqs(follower.poll().lines) == [1, 2, 3]
    log.write_bytes(records(1, 2, 3) + b"x\n")
    first = follower.poll()
    assert first.problem is not None
    assert first.problem.cause == f"{LOG} has more than the 3 lines that are read"
    monkeypatch.setattr(journal, "_consume", lambda *_: pytest.fail("read again"))
    assert follower.poll() == journal.News((), b"", None, first.problem)


def test_the_terminated_part_of_a_log_does_not_depend_on_chunks(
    root: Root, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = records(1, 2, 3)
    log.write_bytes(whole + b'{"seq":4')
    for size in (1, 7, 10_000):
        monkeypatch.setattr(files, "_PIECE", size)
        assert journal.terminated(root, LOG) == (len(whole), sha256(whole))
