"""A server of Google Cloud Storage's JSON API with one bucket: metadata, listings and downloads.

As far as the documentation of the API says what gcsfs asks for:
https://docs.cloud.google.com/storage/docs/json_api/v1/objects
"""

import contextlib
import http.server
import json
import re
import threading
import urllib.parse


class GoogleStore:
    """Objects of the bucket, and the requests for them.

    Attributes:
      objects: {name: (generation, content)}.
      requests: (kind of request, name) of all requests.
      before_download: called with the name of an object before its bytes are sent.
    """

    def __init__(self):
        self.objects = {}
        self.requests = []
        self.before_download = lambda name: None
        self._generation = 1000

    def put(self, name, content):
        """Writes an object, which has a new generation."""
        self._generation += 1
        self.objects[name] = (self._generation, content)

    def answer(self, path, query, byte_range):
        """Returns status and body of an answer."""
        match = re.fullmatch(r"/(download/)?storage/v1/b/bucket/o(?:/(.+))?", path)
        if match is None:
            return 404, b"{}"
        is_download, name = bool(match[1]), urllib.parse.unquote(match[2] or "")
        if not name:
            self.requests.append(("list", query.get("prefix", "")))
            found = [x for x in sorted(self.objects) if x.startswith(query.get("prefix", ""))]
            return 200, json.dumps({"items": [self._metadata(x) for x in found]}).encode()
        self.requests.append(("get" if is_download else "head", name))
        if is_download:
            self.before_download(name)
        if name not in self.objects:
            return 404, b"{}"
        generation, content = self.objects[name]
        if query.get("generation") not in (None, str(generation)):
            return 404, b"{}"
        if not is_download:
            return 200, json.dumps(self._metadata(name)).encode()
        if byte_range is None:
            return 200, content
        start, end = re.fullmatch(r"bytes=(\d+)-(\d*)", byte_range).groups()
        return 206, content[int(start) : int(end) + 1 if end else None]

    def _metadata(self, name):
        generation, content = self.objects[name]
        return {
            "kind": "storage#object",
            "name": name,
            "bucket": "bucket",
            "size": str(len(content)),
            "generation": str(generation),
            "metageneration": "1",
            "etag": f"etag{generation}",
            "updated": "2026-11-30T00:00:00.000Z",
            "timeCreated": "2026-11-30T00:00:00.000Z",
        }


@contextlib.contextmanager
def google_store(monkeypatch):
    """Context manager that yields a `GoogleStore`, at which gs:// is."""
    store = GoogleStore()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            parts = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(parts.query))
            status, body = store.answer(parts.path, query, self.headers.get("Range"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    import gcsfs

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
        gcsfs.GCSFileSystem.clear_instance_cache()
        yield store
        server.shutdown()
    gcsfs.GCSFileSystem.clear_instance_cache()
