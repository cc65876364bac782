# SPDX-License-Identifier: PostgreSQL
"""parse-dump as whoever reads its answers sees it: one line of JSON per text, whatever is in the text.

The program is looked for beside $PGPOOL_BIN, else in the current folder."""
import json
import os
import subprocess

import pytest

BUILD = os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd()
PROGRAM = os.path.join(BUILD, "parse-dump")

pytestmark = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="parse-dump is not built")


def dump(data):
    """The answers to the bytes of `data`, each line read on its own as strict UTF-8 and JSON."""
    done = subprocess.run([PROGRAM], input=data, capture_output=True, timeout=60, check=True)
    lines = done.stdout.split(b"\n")
    assert lines.pop() == b"" and done.stderr == b""
    return [json.loads(line.decode("utf-8")) for line in lines]


def tables(text):
    (answer,) = dump(text + b"\0")
    return answer["stmts"][0]["tables"]


def test_every_text_has_one_answer():
    assert dump(b"") == []
    assert dump(b"\0\0") == [{"ok": True, "stmts": []}] * 2
    answers = dump(b"SELECT 1\0-- only this\0SELECT FROM FROM\0;;\r\n;\0BEGIN;SELECT 1;\0")
    assert [(a["ok"], len(a.get("stmts", []))) for a in answers] == [
        (True, 1), (True, 0), (False, 0), (True, 0), (True, 2)]


def test_a_text_is_answered_before_the_next_one_comes():
    """Whoever asks and waits would wait forever."""
    with subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asked:
        for text, found in ((b"SELECT 1\0", 1), (b"SELECT 1; SELECT ", None), (b"2\0BEGIN", 2), (b"\0", 1)):
            asked.stdin.write(text)
            asked.stdin.flush()
            if found is not None:
                assert len(json.loads(asked.stdout.readline())["stmts"]) == found
        asked.stdin.write(b"END")  # has no NUL
        asked.stdin.close()
        assert json.loads(asked.stdout.readline())["stmts"][0]["kind"] == "commit"
        assert asked.stdout.read() == b""
    assert asked.returncode == 0


def test_texts_of_any_length():
    """Longer and shorter than what is read at once, NULs at its borders."""
    texts = [b"SELECT " + b"1" * n for n in (1, 65528, 65529, 65535, 131063, 1000000, 2)] * 3
    answers = dump(b"".join(text + b"\0" for text in texts))
    assert len(answers) == len(texts) and all(a["ok"] for a in answers)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM], input=b"SELECT 1\0", stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and b"cannot" in done.stderr


@pytest.mark.parametrize("text", [
    b'SELECT * FROM "a\xc3"', b"SELECT '\xff'", b"SELECT * FROM t\xc0\xaf",
    b'SELECT * FROM "\xed\xa0\x80"', b'SELECT * FROM "\xf4\x90\x80\x80"', b"-- \xe0\x80\x80\nSELECT 1",
    b"SELECT 1 -- \xf0\x80\x80\x80", b"SELECT * FROM \xf5\x80\x80\x80", b"SELECT \x80", b"SELECT a\xe2\x82"])
def test_what_is_not_utf8_is_refused_and_the_next_text_answered(text):
    """As a server of that encoding does; the answer would not be JSON."""
    refused, answered = dump(text + b"\0SELECT * FROM t\0")
    assert refused == {"ok": False}
    assert answered["stmts"][0]["tables"] == ["t"]


def test_names_come_out_as_they_are():
    assert tables('SELECT * FROM "é\U0001f600", Ä_B'.encode()) == ["Ä_b", "é\U0001f600"]
    assert tables(b'SELECT * FROM "a\x01\x1f\x7f\\""b"') == ['a\x01\x1f\x7f\\"b']
    assert tables(b'SELECT * FROM U&"\\00e9\\+01F600"') == ["é\U0001f600"]
    assert tables(('SELECT * FROM a' + "é" * 40).encode()) == ["a" + "é" * 31]
    assert tables(('SELECT * FROM "' + "é" * 40 + '"').encode()) == ["é" * 31]


def test_a_byte_order_mark_is_a_part_of_a_word():
    assert dump(b"\xef\xbb\xbfSELECT 1\0") == [{"ok": False}]
