"""Answers of a server that is slow on purpose."""

import contextlib
import http.server
import threading
import time

import pytest

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
