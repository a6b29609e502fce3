"""A stand-in for the Hugging Face hub: the part of its interface that huggingface_hub uses here."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

TOKEN = "hf_good"


class Hub:
    """Repositories, which are read and written by HTTP.

    Attributes:
      files: {(`models` or `datasets`, `OWNER/NAME`): {revision: {path: bytes}}}.
      private: names of repositories that need the token.
      gated: names of those whose terms have to be accepted.
      requests: (method, path) of what was asked.
      status: a status that is the answer to everything; 0 for none.
      is_read_only: whether the token may only read.
    """

    def __init__(self):
        self.files, self.private, self.gated, self.requests = {}, set(), set(), []
        self.status, self.is_read_only = 0, False
        self.url = ""

    def put(self, name, files, kind="models", revision="main"):
        """Puts {path: bytes} into a repository."""
        self.files.setdefault((kind, name), {}).setdefault(revision, {}).update(files)

    def commit(self, kind, name, revision):
        """The commit of a revision: a checksum of its files."""
        files = self.files[kind, name][revision]
        return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()

    def find(self, kind, name, revision):
        """(commit, files) of a branch or commit; None if there is none."""
        for branch, files in self.files[kind, name].items():
            commit = self.commit(kind, name, branch)
            if revision in (branch, commit):
                return commit, files
        return None


_API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(\w+)/([^/]+))?(?:/.*)?")
_FILE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        hub, path = self.server.hub, urllib.parse.unquote(self.path.partition("?")[0])
        hub.requests.append((self.command, path))
        if hub.status:
            return self.answer(hub.status)
        file, api = _FILE.fullmatch(path), _API.fullmatch(path)
        if file:
            kind, name, revision = "datasets" if file[1] else "models", file[2], file[3]
        elif api:
            kind, name, _, revision = api.groups()
        else:
            return self.answer(404)
        if not self.is_open(kind, name):
            return None
        found = hub.find(kind, name, revision or "main")
        if found is None:
            return self.answer(404, X_Error_Code="RevisionNotFound")
        commit, files = found
        if file:
            return self.send_file(commit, files, file[4])
        if api[3] == "tree":
            entries = [{"type": "file", "path": p, **_entry(x)} for p, x in files.items()]
            return self.answer(200, entries)
        siblings = [{"rfilename": path, **_entry(x)} for path, x in files.items()]
        return self.answer(200, {"id": name, "sha": commit, "siblings": siblings})

    do_HEAD = do_GET

    def is_open(self, kind, name):
        hub, authorization = self.server.hub, self.headers.get("Authorization")
        if authorization not in (None, f"Bearer {TOKEN}"):
            self.answer(401, X_Error_Message="Invalid credentials in Authorization header")
        elif name in hub.gated:
            self.answer(403, X_Error_Code="GatedRepo")
        elif (kind, name) not in hub.files and authorization:
            self.answer(404, X_Error_Code="RepoNotFound")
        elif (kind, name) not in hub.files:
            self.answer(401, X_Error_Code="RepoNotFound")
        elif name in hub.private and not authorization:
            self.answer(401, X_Error_Message="Invalid username or password.")
        else:
            return True
        return False

    def send_file(self, commit, files, path):
        if path not in files:
            return self.answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        checksum = f'"{hashlib.sha256(files[path]).hexdigest()}"'
        return self.answer(200, files[path], ETag=checksum, X_Repo_Commit=commit)

    def do_POST(self):
        hub, path = self.server.hub, urllib.parse.unquote(self.path.partition("?")[0])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        hub.requests.append((self.command, path))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, X_Error_Message="Invalid credentials in Authorization header")
        if hub.is_read_only:
            return self.answer(403)
        if path == "/api/validate-yaml":
            return self.answer(200, {"warnings": [], "errors": []})
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        kind, name, action, revision = _API.fullmatch(path).groups()
        if action == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            return self.answer(200, {"files": files})
        lines = [json.loads(line)["value"] for line in body.splitlines()[1:]]
        files = {line["path"]: base64.b64decode(line["content"]) for line in lines}
        hub.put(name, files, kind, revision)
        commit = hub.commit(kind, name, revision)
        return self.answer(
            200, {"commitUrl": f"{hub.url}/{name}/commit/{commit}", "commitOid": commit}
        )

    def create(self, body):
        hub, name = self.server.hub, f"{body['organization']}/{body['name']}"
        kind = f"{body.get('type', 'model')}s"
        if (kind, name) in hub.files:
            return self.answer(409, {"url": f"{hub.url}/{name}"})
        hub.put(name, {".gitattributes": b""}, kind)
        if body.get("private") or body.get("visibility") == "private":
            hub.private.add(name)
        return self.answer(200, {"url": f"{hub.url}/{name}"})


def _entry(content):
    return {"size": len(content), "oid": hashlib.sha1(content).hexdigest()}


@contextlib.contextmanager
def hub_server():
    """A `Hub` that is served at its `url`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.hub = Hub()
    server.hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
