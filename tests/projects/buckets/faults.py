"""A proxy in front of an HTTP server, whose answers come late, cut, as errors or not at all."""

import contextlib
import http.client
import http.server
import threading
import time


@contextlib.contextmanager
def faulty(endpoint, fault, log=None):
    """Yields the URL of the proxy.

    Args:
      endpoint: the URL of the server.
      fault: takes the method and the path of a request; returns `late`, `cut` (half of the answer),
        `lost` (done, without an answer), the status and body of an answer of its own, or None.
      log: list to which (method, path, bytes of the answer) of each request is appended.
    """

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            wrong = fault(self.command, self.path)
            if wrong == "late":
                time.sleep(0.5)
            if isinstance(wrong, tuple):
                status, content, headers = *wrong, []
            else:
                server = http.client.HTTPConnection(endpoint.removeprefix("http://"))
                server.request(self.command, self.path, body, dict(self.headers))
                reply = server.getresponse()
                status, content, headers = reply.status, reply.read(), reply.getheaders()
                server.close()
            if log is not None:
                log.append((self.command, self.path, len(content)))
            self.close_connection = wrong in ("cut", "lost")
            if wrong == "lost":
                return
            self.send_response(status)
            size = dict(headers).get("Content-Length") if self.command == "HEAD" else None
            for name, value in headers:
                if name not in ("Content-Length", "Transfer-Encoding", "Connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", size or str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[: len(content) // 2] if wrong == "cut" else content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def error(status, code, message):
    """The answer of S3 for an error; that of a HEAD has no body."""
    return status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
