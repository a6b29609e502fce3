"""Answers of a server that is slow or wrong on purpose."""

import contextlib
import http.server
import socketserver
import threading
import time

import pytest

from official.xlnet.errors import DataError
from official.xlnet.serving.client.endpoint import connect

ANSWER = b'{"outputs": {"x": [1]}}'


class Dripping(http.server.BaseHTTPRequestHandler):
    """Answers a byte each fifth of a second, on the path `/quick` at once."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        size = len(ANSWER) if "quick" in self.path else 1
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for first in range(0, len(ANSWER), size):
                self.wfile.write(ANSWER[first : first + size])
                time.sleep(0.2 if size == 1 else 0)

    def log_message(self, *_):
        """Nothing."""


def test_a_dripping_answer_ends_at_the_timeout():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        found = connect(address, "quick", timeout_seconds=0.7, retries=0).predict({"a": [1]})
        assert found["x"].tolist() == [1]
        begin = time.monotonic()
        with pytest.raises(ConnectionError, match=r"no whole answer in 0\.7 s"):
            connect(address, "slow", timeout_seconds=0.7, retries=0).predict({"a": [1]})
        assert time.monotonic() - begin < 2.5
        server.shutdown()


WRONG = {
    "": "RemoteDisconnected",
    "lala": "BadStatusLine",
    "HTTP/1.1 99999 OK": "BadStatusLine",
    "HTTP/1.1 204 No Content": "HTTP 204",
    "HTTP/1.1 302 Found|Location: file:///etc/passwd": "HTTP 302",
    "HTTP/1.1 302 Found|Location: http://[::broken/": "HTTP 302",
    "HTTP/1.1 200 OK|Content-Length: 5|Content-Length: 22": "unmatching values",
    "HTTP/1.1 200 OK|Content-Length: 500": "IncompleteRead",
    "HTTP/1.1 200 OK|Content-Length: 7": 'HTTP 200: {"outpu',
    "HTTP/1.1 200 OK|Content-Encoding: gzip": "failed to decode",
    "HTTP/1.1 200 OK|Content-Encoding: " + "gzip, " * 99 + "gzip": "Too many content encodings",
    "HTTP/1.1 200 OK|Transfer-Encoding: chunked": "IncompleteRead",
    "HTTP/1.1 200 OK|" + "A: b|" * 3000: "more than 100 headers",
    "HTTP/1.1 200 OK|A: " + "b" * 100_000: "header line",
}


@pytest.mark.parametrize("head", WRONG)
def test_a_wrong_answer_is_an_error_of_the_endpoint(head):
    class Wrong(socketserver.StreamRequestHandler):
        def handle(self):
            while self.rfile.readline().strip():
                """The request's headers, and then its body."""
            self.rfile.read1()
            lines = head.replace("|", "\r\n").strip().encode()
            with contextlib.suppress(OSError):
                self.wfile.write(lines + b"\r\n\r\n" + ANSWER if lines else b"")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Wrong) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with pytest.raises((DataError, ConnectionError)) as error:
            connect(address, "m", timeout_seconds=9, retries=0).predict({"a": [1]})
        server.shutdown()
    assert str(error.value).startswith(f"{address}: model 'm': ")
    assert WRONG[head] in str(error.value)
