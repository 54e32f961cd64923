"""What services that predict do wrong: behaviours for the `FaultServer` of servers.py, and what is to come of each."""

import gzip
import subprocess
from http.client import responses

import endpoint_faults as faults
from endpoint_faults import says, sends
from servers import Exchange

CAP = 16 * 2**20  # bytes that an answer may have
GOOD = '{"predicted": "SELECT 1"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def answers(body: bytes | str = GOOD, status: int = 200, content_type: str = "application/json", **headers):
    return says(body, f"{status} {responses[status]}", Content_Type=content_type, **headers)


def bomb() -> bytes:
    """Blanks for many times the cap, in some hundred kilobytes."""
    return gzip.compress(b" " * (12 * CAP), 1)


def echoes(status: int):
    """Repeat the credentials and the key that came."""

    def behave(exchange: Exchange) -> None:
        headers = exchange.request.headers
        message = f"you sent {headers.get('authorization')} {headers.get('x-api-key')}"
        exchange.reply(message, f"{status} {responses[status]}", Content_Type="text/plain")

    return behave


# Another call may have an answer.
TEMPORARY = {
    "time-out": (answers("", 408), "HTTP 408 Request Timeout"),
    "too many requests": (
        answers("slow down", 429, "text/plain"),
        "HTTP 429 Too Many Requests: slow down: lower `concurrency`",
    ),
    "error": (answers("no memory", 500, "text/plain"), "HTTP 500 Internal Server Error: no memory"),
    "error in HTML": (
        answers("<h1>Oh</h1><script>x</script>", 502, "text/html"),
        "HTTP 502 Bad Gateway: Oh: the service failed: see its log, then run again$",
    ),
    "unavailable": (answers("", 503), "HTTP 503"),
    "gateway time-out": (answers("", 504), "HTTP 504"),
    "hangs up": (faults.hangs_up, "the connection broke: .*disconnected"),
    "resets the connection": (faults.resets, "the connection broke"),
    "not HTTP": (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), "the connection broke"),
    "less than announced": (
        sends(HEAD + b"Content-Length: 500\r\n\r\n" + GOOD.encode()),
        f"the answer breaks off after {len(GOOD)} of 500 bytes: see the log of the service",
    ),
    "truncated chunks": (
        sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5a\r\n{"),
        "the answer breaks off: see the log of the service",
    ),
    "two lengths": (
        sends(HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + GOOD.encode()),
        r"the answer has invalid headers \(conflicting Content-Length headers\): correct the configuration",
    ),
    "gzip that is none": (answers(GOOD, Content_Encoding="gzip"), "cannot be decompressed"),
    **{
        f"{encoding} {fault}": (
            answers(body, Content_Encoding=encoding),
            f"cannot be decompressed .{encoding}: {reason}",
        )
        for encoding, fault, body, reason in faults.broken_compression(GOOD.encode())
    },
    "half a document": (answers(GOOD[:-9]), "not valid JSON: .*application/json, 16 bytes"),
    "half a character": (answers('{"predicted": "é'.encode()[:-1]), "not valid JSON: .*unexpected end of data"),
    "nothing": (answers(""), "not valid JSON: .* 0 bytes"),
}
# No call will have one before something else is set.
FINAL = {
    "too many encodings": (answers(GOOD, Content_Encoding=", ".join(["gzip"] * 50)), "is encoded as 'gzip, gzip, "),
    "an encoding that was not asked for": (answers(GOOD, Content_Encoding="br"), "is encoded as 'br', which was not"),
    **{
        f"charset {charset}": (
            answers(GOOD, 200, f"text/plain; charset={charset}"),
            f"the answer has the unknown charset '{charset}': send UTF-8$",
        )
        for charset in (
            "rot13",
            "hex",
            "zlib",
            "base64",
            "utf-7",
            "idna",
            "punycode",
            "unicode_escape",
            "undefined",
            "x",
        )
    },
    "HTML": (answers("<html><b>Wel</b>come!</html>", 200, "text/html; charset=x"), "a web page came back.*: Wel come!"),
    "no content": (answers("", 204), "HTTP 204 No Content"),
    "a part": (answers(GOOD, 206), "HTTP 206"),
    "bad request": (
        answers("no\n such \x1b[2J\u202e thing", 400, "text/plain"),
        r"HTTP 400 .*: no such \\x1b\[2J\\u202e",
    ),
    "not found": (answers("", 404), "HTTP 404 Not Found: correct the path of the URL"),
    "unprocessable": (answers("no text", 422, "text/plain"), "HTTP 422 .*: no text: make `body` what the service asks"),
    "method not allowed": (answers("", 405), "HTTP 405"),
    "redirect without a target": (answers("", 302), "HTTP 302 Found"),
    "redirect to itself": (faults.redirects_to_itself, "more than 5 redirects"),
    "redirect to a file": (faults.redirects("file:///etc/passwd"), "redirects to another origin, file://"),
    "redirect to nowhere": (faults.redirects("http://"), "redirect|cannot be sent"),
    "redirect to no URL": (faults.redirects("http://[oh/"), "redirects to another origin"),
    "NaN": (answers('{"predicted": NaN}'), "NaN is not JSON"),
    "a number too large": (answers('{"predicted": 1e999}'), "the number 1e999 is too large"),
    "digits without end": (answers('{"predicted": ' + "9" * 5000 + "}"), "not valid JSON: "),
    "duplicate keys": (answers('{"predicted": "a", "predicted": "b"}'), "an object has two members 'predicted'"),
    "deep nesting": (answers("[" * 200_000), "nested too deeply"),
    "bytes that are not text": (answers(b'{"predicted": "\xff\xfe"}'), "not valid JSON: 'utf-8' codec can't decode"),
    "text that is none": (answers(b"SELECT \xff", 200, "text/plain"), "the answer is not text: 'utf-8' codec"),
    "no bound of its body": (faults.sends_a_body_without_end, "more than 16,777,216 bytes"),
    "null": (answers('{"predicted": null}'), 'predicted is null, which is not an answer: an empty one is ""'),
    "an object": (answers('{"sql": "SELECT 1", "n": 2}'), r"`answer:` takes .* with sql \(a text\), n \(a number\)$"),
    "a list": (answers('["SELECT 1"]'), "`answer:` takes a JSONPath into a list of 1$"),
    "null alone": (answers("null"), "`answer:` takes a JSONPath into null$"),
    "control characters in names": (answers('{"\\u001b[2J\\n": 1}'), r"an object with \\x1b\[2J"),
    "a value for a query": (answers('{"predicted": ["SELECT 1"]}'), "returned list, not text$"),
}


def make_certificate(folder):
    """A key and a certificate for 127.0.0.1 that nobody signed but itself, and the certificate alone as ca.pem."""
    path = folder / "server.pem"
    command = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout {path} -out {folder / 'ca.pem'}"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *command.split(), *names], check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "ca.pem").read_text())
    return path
