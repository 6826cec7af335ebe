"""The pure pieces of the Python SDK, which need no server: what is tried again and for how long, how lines and offsets are put together, and what is refused
before it is sent. Each is one function and a table.

  python3 -m unittest tests/sdk/tables.py     (with the SDK installed; scripts/test-sdk does)
"""

import os
import unittest
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Optional

import belljar
from belljar.asking import Caller
from belljar.errors import refusal
from belljar.lease import Renewals
from belljar.lines import LineDecoder
from belljar.making import mount
from belljar.model import Model, moment
from belljar.output import Gathered, Position, event_of
from belljar.patience import Patience, may_repeat
from belljar.plan import Send, Sleep
from belljar.process_models import Exit, Gap, Omitted, Output, Result
from belljar.quantities import as_bytes, as_millis, as_seconds, whole_seconds
from belljar.request import NULL, Answer, OpenBody, asking, at, path_fields
from belljar.settings import Settings
from belljar.untrusted import escape

URL = "http://127.0.0.1:7070"
NEVER_SENT = belljar.Unreachable(URL, "refused", maybe_done=False)
CUT = belljar.Unreachable(URL, "cut", maybe_done=True)
READ = asking("GET", at("v1", "sandboxes"))
WRITE = asking("POST", at("v1", "sandboxes", "s", "pause"))
KEYED = asking("POST", at("v1", "sandboxes"), repeatable=True)
ONCE = asking("PUT", at("v1", "sandboxes", "s", "files"), body=OpenBody(None), repeatable=True)


def problem(code, status=503, **more):
    return refusal({"code": code, "status": status, "detail": "words", **more})


def out(offset, data, stream="stdout"):
    return Output(stream, offset, data)


class Repetition(unittest.TestCase):
    def test_only_what_cannot_be_done_twice_by_it_is_sent_again(self):
        for request, error, expected in [
            (READ, NEVER_SENT, True), (READ, CUT, True), (WRITE, NEVER_SENT, True), (WRITE, CUT, False), (KEYED, CUT, True),
            (WRITE, problem("busy"), True), (WRITE, problem("stopping"), True), (WRITE, problem("rate_limited", 429), True),
            (WRITE, problem("guest_lost"), False), (READ, problem("guest_lost"), True), (KEYED, problem("internal", 500), False),
            (READ, problem("sandbox_not_found", 404), False), (READ, problem("quota_exceeded", 429), False),
            (ONCE, NEVER_SENT, True), (ONCE, CUT, False), (ONCE, problem("busy"), False),
        ]:
            self.assertEqual(may_repeat(request, error), expected, (request.method, error))

    def test_patience_has_an_end_and_waits_as_long_as_the_server_says(self):
        now = [0.0]
        patience = Patience(60, clock=lambda: now[0], chance=lambda: 0.0)
        waits = []
        with self.assertRaises(belljar.Unreachable):
            for _ in range(1000):
                waits.append(patience.bear(CUT))
                now[0] += waits[-1]
        self.assertEqual(waits[:7], [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0])
        self.assertLessEqual(sum(waits), 60)
        patience.answered()
        self.assertEqual(patience.bear(problem("busy", retry_after=7)), 7)
        with self.assertRaises(belljar.Busy):
            patience.bear(problem("busy", retry_after=61))
        with self.assertRaises(belljar.Unreachable):
            Patience(0, chance=lambda: 0.0).bear(NEVER_SENT)

    def test_a_server_that_never_answered_is_not_waited_for(self):
        yes, busy = Answer(200, {}, b"{}"), Answer(503, {"retry-after": "1"}, b'{"code":"busy","status":503,"detail":"full"}')
        for request, comes, expected in [
            (READ, [NEVER_SENT], belljar.Unreachable),
            (READ, [busy, NEVER_SENT, CUT, yes], 3),
            (WRITE, [busy, yes], 1),
            (WRITE, [busy, CUT], belljar.Unreachable),
            (READ, [Answer(200, {}, b"{}")], 0),
            (READ, [Answer(404, {}, b"<html>")], belljar.BadAnswer),
            (READ, [Answer(502, {}, b"<html>"), CUT, busy, yes], 3),
        ]:
            self.assertEqual(self.asked(request, list(comes)), expected, comes)

    def asked(self, request, comes):
        """How often it slept until there was an answer, or what was raised."""
        plan, sleeps, value, error = Caller(Settings(URL, "bj_x", patience=60)).ask(request), 0, None, None
        try:
            while True:
                effect = plan.throw(error) if error else plan.send(value)
                value = error = None
                if isinstance(effect, Sleep):
                    sleeps += 1
                    continue
                self.assertEqual(effect, Send(request))
                came = comes.pop(0)
                value, error = (None, came) if isinstance(came, Exception) else (came, None)
        except StopIteration:
            return sleeps
        except belljar.BelljarError as raised:
            return type(raised)

    def test_leases_are_renewed_while_somebody_holds_them(self):
        now, renewals = [0.0], Renewals(clock=lambda: now[0])

        class Held:
            pass

        one, other = Held(), Held()
        self.assertTrue(renewals.add("s1", one, 120))
        self.assertFalse(renewals.add("s2", other, 30))
        self.assertEqual((renewals.wait(), renewals.due()), (10, []))
        now[0] = 10
        self.assertEqual(renewals.due(), [("s2", 30)])
        renewals.renewed("s2", 1 / 3)
        self.assertEqual(renewals.wait(), 10)
        del other
        self.assertEqual(renewals.wait(), 30)
        renewals.remove("s1")
        self.assertEqual(renewals.wait(), None)
        self.assertTrue(renewals.add("s1", one, 120))


class Lines(unittest.TestCase):
    def test_lines_are_the_same_however_they_are_cut(self):
        text = '{"type":"data","text":"ä\\n"}\n\n{"type":"heartbeat"}\r\n{"n":3}\n'.encode()
        for size in range(1, len(text) + 1):
            decoder = LineDecoder(URL)
            lines = [line for begin in range(0, len(text), size) for line in decoder.feed(text[begin : begin + size])]
            self.assertEqual(lines, [{"type": "data", "text": "ä\n"}, {"type": "heartbeat"}, {"n": 3}], size)
            self.assertTrue(decoder.is_between_lines)

    def test_what_is_no_line_is_refused(self):
        for text in [b"nonsense\n", b"[1]\n", b"\xff\n", b"x" * 101]:
            with self.assertRaises(belljar.BadAnswer, msg=text):
                LineDecoder(URL, most=100).feed(text)
        decoder = LineDecoder(URL)
        self.assertEqual(decoder.feed(b'{"a":'), [])
        self.assertFalse(decoder.is_between_lines)

    def test_lines_of_output_mean_events(self):
        for line, expected in [
            ({"type": "data", "stream": "stdout", "offset": 3, "text": "ä"}, out(3, "ä".encode())),
            ({"type": "data", "stream": "stderr", "offset": 0, "base64": "/w=="}, out(0, b"\xff", "stderr")),
            ({"type": "gap", "stream": "stdout", "from": 1, "to": 9}, Gap("stdout", 1, 9)),
            ({"type": "exit", "exit_code": None, "signal": 9, "cause": "deadline"}, Exit(None, 9, "deadline")),
            ({"type": "started", "process": {}}, None), ({"type": "heartbeat"}, None), ({"type": "of a newer server"}, None),
        ]:
            self.assertEqual(event_of(line, URL), expected)
        for line in [
            {"type": "data", "stream": "other", "offset": 0, "text": ""}, {"type": "data", "stream": "stdout", "text": ""}, {"type": "exit"},
            {"type": "data", "stream": "stdout", "offset": 0, "base64": "!"}, {"type": "gap", "stream": "stdout", "from": None, "to": 1},
        ]:
            with self.assertRaises(belljar.BadAnswer, msg=line):
                event_of(line, URL)
        with self.assertRaises(belljar.Ended):
            event_of({"type": "error", "problem": {"code": "sandbox_ended", "status": 409}}, URL)


class Offsets(unittest.TestCase):
    def test_what_was_given_before_is_not_given_twice(self):
        position = Position()
        for event, expected in [
            (out(0, b"abc"), out(0, b"abc")), (out(0, b"abc"), None), (out(1, b"bcde"), out(3, b"de")), (Gap("stdout", 0, 5), None),
            (Gap("stdout", 2, 9), Gap("stdout", 5, 9)), (out(9, b"x"), out(9, b"x")), (out(0, b"e", "stderr"), out(0, b"e", "stderr")),
            (Exit(0), Exit(0)),
        ]:
            self.assertEqual(position.take(event), expected)
        self.assertEqual(position.next, {"stdout": 10, "stderr": 1})

    def test_of_much_output_the_first_and_the_last_half_are_kept(self):
        for most, events, expected in [
            (10, [], (b"", None)),
            (10, [out(0, b"0123456789")], (b"0123456789", None)),
            (10, [out(0, b"0123456789ab")], (b"01234789ab", Omitted(5, 7))),
            (10, [out(n, b"%d" % (n % 10)) for n in range(1000)], (b"0123456789", Omitted(5, 995))),
            (0, [out(0, b"abc")], (b"", Omitted(0, 3))),
            (1, [out(0, b"abc")], (b"a", Omitted(1, 3))),
            (10, [out(0, b"ab"), Gap("stdout", 2, 7), out(7, b"xy")], (b"abxy", Omitted(2, 7))),
            (10, [Gap("stdout", 0, 7), out(7, b"xy")], (b"xy", Omitted(0, 7))),
            (10, [out(0, b"0123456"), Gap("stdout", 7, 9), out(9, b"xy")], (b"01234xy", Omitted(5, 9))),
            (10, [out(100, b"ab")], (b"ab", None)),
            (200_000, [out(n * 50_000, b"%d" % n * 50_000) for n in range(8)], (b"0" * 50_000 + b"1" * 50_000 + b"6" * 50_000 + b"7" * 50_000,
                                                                              Omitted(100_000, 300_000))),
        ]:
            gathered = Gathered(most)
            for event in events:
                gathered.take(event)
            self.assertEqual(gathered.finish(), expected, (most, events[:3]))


class Words(unittest.TestCase):
    def test_sizes_and_times_are_read_as_people_write_them(self):
        for text, expected in [(0, 0), (1000, 1000), ("1000", 1000), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29), ("2 GB", 2 * 10**9), ("7B", 7),
                               ("512M", 512 << 20), ("4k", 4096), ("2T", 2 << 40)]:
            self.assertEqual(as_bytes("x", text), expected, text)
        for text, expected in [(90, 90), (1.5, 1.5), ("90", 90), ("90s", 90), ("1.5h", 5400), ("250ms", 0.25), ("7d", 604800), ("5 m", 300), ("3m20s", 200),
                               (timedelta(minutes=1), 60)]:
            self.assertEqual(as_seconds("x", text), expected, text)
        self.assertEqual((whole_seconds("x", 1.1), whole_seconds("x", "2s"), as_millis("x", 0.5), as_millis("x", "2.25")), (2, 2, 500, 2250))
        for read, wrong in [(as_bytes, ["", "x", "-1", -1, "1XB", True, 1.5, None]), (as_seconds, ["", "x", "5x", "1s1m", -1, float("inf"), True, None]),
                            (as_millis, [0, -1, "two", None])]:
            for value in wrong:
                with self.assertRaises(belljar.Misuse, msg=(read, value)) as raised:
                    read("limits.x", value)
                self.assertEqual(raised.exception.field, "limits.x")

    def test_paths_lead_nowhere_else(self):
        self.assertEqual(at("v1", "sandboxes", "a/../b?x#y"), "/v1/sandboxes/a%2F..%2Fb%3Fx%23y")
        for piece in ("", ".", ".."):
            with self.assertRaises(belljar.Misuse):
                at("v1", "volumes", piece)
        self.assertEqual(path_fields("a"), {"path": "a"})
        self.assertEqual(path_fields(b"/\xffa", "from"), {"from_base64": "L/9h"})

    def test_what_is_not_set_is_not_sent(self):
        request = asking("PATCH", "/x", json={"a": None, "b": NULL, "c": {}}, query={"d": None, "e": False, "f": True, "g": ["1", "2"], "h": 0})
        self.assertEqual((request.body, request.query), (b'{"b": null, "c": {}}', [("f", "true"), ("g", "1"), ("g", "2"), ("h", "0")]))

    def test_volumes_are_written_as_on_the_command_line(self):
        for text, expected in [("data:/mnt", ("data", "/mnt", "read-write")), ("d:/a:ro", ("d", "/a", "read-only")), ("d:/a:shared", ("d", "/a", "shared"))]:
            self.assertEqual(mount(text), belljar.VolumeMount(*expected))
        for wrong in ["data", "data:mnt", ":/mnt", "d:/a:rx"]:
            with self.assertRaises(belljar.Misuse):
                mount(wrong)

    def test_what_a_newer_server_adds_is_left_out_and_what_lacks_is_named(self):
        @dataclass(frozen=True)
        class Inner(Model):
            at: datetime

        @dataclass(frozen=True)
        class Outer(Model):
            name: str
            inner: Optional[str] = None

        self.assertEqual(Outer.from_json({"name": "a", "new": 1, "inner": None}), Outer("a"))
        for data in [{}, {"name": 1}, {"name": None}, [], None, {"name": "a", "inner": 5}]:
            with self.assertRaisesRegex(ValueError, "Outer"):
                Outer.from_json(data)
        for text, expected in [
            ("2026-11-19T04:05:06Z", datetime(2026, 11, 19, 4, 5, 6, tzinfo=timezone.utc)),
            ("2026-11-19T04:05:06.123456789Z", datetime(2026, 11, 19, 4, 5, 6, 123456, tzinfo=timezone.utc)),
            ("2026-11-19T04:05:06.5+01:00", datetime(2026, 11, 19, 4, 5, 6, 500000, tzinfo=timezone(timedelta(hours=1)))),
        ]:
            self.assertEqual(moment(text), expected)


class Untrusted(unittest.TestCase):
    HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\u200b\r\n\x00\x9b31m"

    def test_nothing_that_is_shown_steers_a_terminal(self):
        result = Result(Exit(1), self.HOSTILE.encode(), self.HOSTILE.encode() + b"\xff")
        shown = [
            repr(result), str(belljar.CommandFailed(result)), escape(self.HOSTILE), escape(self.HOSTILE.encode()), repr(out(0, self.HOSTILE.encode())),
            str(refusal({"code": "guest_refused", "status": 409, "detail": self.HOSTILE, "request_id": self.HOSTILE})),
            repr(belljar.CodeError(self.HOSTILE, self.HOSTILE, [self.HOSTILE])), repr(belljar.CodeResult(True, {"text/plain": self.HOSTILE, self.HOSTILE: 1})),
            repr(belljar.Execution(self.HOSTILE, "", [], error=belljar.CodeError("E", self.HOSTILE))), repr(belljar.Hit(self.HOSTILE, 1, self.HOSTILE)),
            str(belljar.CodeFailed(belljar.Execution("", "", [], error=belljar.CodeError("E", self.HOSTILE)))), str(belljar.BadAnswer(URL, self.HOSTILE)),
            repr(belljar.Change("created", self.HOSTILE)), str(belljar.Misuse("x", "y", self.HOSTILE)), str(belljar.Unreachable(URL, self.HOSTILE, maybe_done=True)),
        ]
        for text in shown:
            self.assertTrue(text.isprintable(), text.encode("unicode_escape"))
        self.assertEqual(result.stdout, self.HOSTILE)

    def test_a_long_output_is_not_shown_whole(self):
        self.assertLess(len(repr(Result(Exit(0), b"x" * 10**6, b""))), 1000)


class Errors(unittest.TestCase):
    def test_each_problem_has_its_class_and_says_what_to_do(self):
        for code, status, kind, words in [
            ("invalid", 400, belljar.Invalid, "words"), ("unauthorized", 401, belljar.Unauthorized, 'eval "$(belljar env)"'),
            ("forbidden", 403, belljar.Forbidden, "scope"), ("sandbox_not_found", 404, belljar.NotFound, "words"), ("sandbox_ended", 409, belljar.Ended, "another"),
            ("exists", 409, belljar.Exists, "words"), ("wrong_state", 409, belljar.Conflict, "words"), ("guest_refused", 409, belljar.GuestRefused, "words"),
            ("too_large", 413, belljar.TooLarge, "words"), ("unsupported", 422, belljar.Unsupported, "words"), ("busy", 503, belljar.Busy, "try again in 3 s"),
            ("rate_limited", 429, belljar.Busy, "try again"), ("quota_exceeded", 429, belljar.QuotaExceeded, "raised"), ("internal", 500, belljar.ServerFault, "log"),
            ("port_closed", 502, belljar.PortClosed, "words"), ("of_a_newer_server", 409, belljar.Conflict, "words"),
            ("of_a_newer_server", 418, belljar.Invalid, "words"), ("of_a_newer_server", 599, belljar.ServerFault, "words"),
        ]:
            error = problem(code, status, retry_after=3, request_id="r1", field="limits.pids")
            self.assertIs(type(error), kind, code)
            self.assertIn(words, str(error))
            self.assertIn("(request r1)", str(error))
            self.assertEqual((error.code, error.status, error.field, error.retry_after), (code, status, "limits.pids", 3))
        self.assertIn("may have had an effect", str(CUT))
        self.assertIn("nothing was done", str(NEVER_SENT))

    def test_without_a_key_it_says_how_to_get_one(self):
        kept = {name: os.environ.pop(name) for name in ("BELLJAR_API_KEY", "BELLJAR_URL", "BELLJAR_CA_FILE") if name in os.environ}
        try:
            with self.assertRaisesRegex(belljar.NotConfigured, r'eval "\$\(belljar env\)"'):
                belljar.Belljar()
            os.environ["BELLJAR_API_KEY"] = "bj_secret"
            with belljar.Belljar() as client:
                self.assertEqual(client.url, URL)
                self.assertNotIn("bj_secret", repr(client) + repr(client._caller.settings))
            for field, wrong in [("url", {"url": "127.0.0.1:7070"}), ("url", {"url": "ftp://host"}), ("ca_file", {"ca_file": "/no/such"})]:
                with self.assertRaises(belljar.Misuse) as raised:
                    belljar.Belljar(**wrong)
                self.assertEqual(raised.exception.field, field)
        finally:
            os.environ.pop("BELLJAR_API_KEY", None)
            os.environ.update(kept)


if __name__ == "__main__":
    unittest.main()
