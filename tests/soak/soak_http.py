# SPDX-License-Identifier: Apache-2.0
"""HTTP as a soak needs it: whole answers, streams, and connections that end when they should not."""
import http.client, json, socket, struct, time

TIMEOUT_S = 900  # an answer that takes longer is lost


class Answer:
    """status, and the body as JSON (whole answers) or `events`: (name, data) of each server-sent event, data as JSON where it is."""

    def __init__(self, status, body=None, events=None, text=""):
        self.status, self.body, self.events, self.text = status, body, events, text


class Connection:
    """One keep-alive connection to 127.0.0.1:port. `pause_s`: its socket takes little, and it waits so long after each event."""

    def __init__(self, port, pause_s=0):
        self.port, self.pause_s = port, pause_s
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def ask(self, method, path, body=None):
        """`body`: an object, sent as JSON, or bytes as they are."""
        return finish(self.begin(method, path, body), self.pause_s)

    def begin(self, method, path, body=None):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if self.pause_s and not self.http.sock:
            self.http.connect()
            self.http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.http.request(method, path, data, {"Content-Type": "application/json"} if data is not None else {})
        return self.http.getresponse()

    def close(self):
        self.http.close()


def finish(response, pause_s=0):
    """The Answer of a response that has begun."""
    kind = response.getheader("Content-Type", "")
    if kind.startswith("text/event-stream"):
        events = []
        for event in read_events(response):
            events.append(event)
            time.sleep(pause_s)
        return Answer(response.status, events=events)
    text = response.read().decode()
    return Answer(response.status, json.loads(text) if kind.startswith("application/json") else None, text=text)


def read_events(response):
    """(name, data) of each event until the stream ends; data is "[DONE]" or JSON."""
    name, data = "message", []
    for line in iter(response.readline, b""):
        line = line.decode().rstrip("\r\n")
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            joined = "\n".join(data)
            yield name, joined if joined == "[DONE]" else json.loads(joined)
            name, data = "message", []
    if data:
        raise ValueError("the stream ends inside an event: " + "\n".join(data))


def leave(sock, reset):
    """Ends a connection at once: with a reset, or with what a closing program sends."""
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def raw(port, data):
    """Connects and sends bytes as they are; the socket."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    sock.sendall(data)
    return sock


def request_bytes(path, body, keep=None):
    """A POST as bytes; `keep`: only that many bytes of its body, though it announces all of them."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: soak\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + (data if keep is None else data[:keep])
