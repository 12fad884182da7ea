"""A bare HTTP client over HTTP and HTTPS, for what curl does not let one see: single bytes, the ends of connections."""
import os, socket, ssl, urllib.parse


class Answer:
    def __init__(self, status, header, body):
        self.status, self.header, self.body = status, header, body


class Client:
    def __init__(self, url, receive_buffer=0):
        place = urllib.parse.urlsplit(url)
        tcp = socket.socket()
        tcp.settimeout(60)
        if receive_buffer:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        tcp.connect((place.hostname, place.port))
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = tcp
        if place.scheme == "https":  # the end without a close_notify shall be an error
            tls = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
            self.socket = tls.wrap_socket(tcp, server_hostname=place.hostname, suppress_ragged_eofs=False)
        self.input = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text.encode() if isinstance(text, str) else text)

    def ask(self, target, method="GET", header="", body=b""):
        self.send(f"{method} {target} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode() + body)

    def line(self):
        got = self.input.readline()
        if not got.endswith(b"\n"):
            raise EOFError(f"the answer ends in {got!r}")
        return got.rstrip(b"\r\n").decode()

    def exactly(self, size):
        got = self.input.read(size)
        if len(got) != size:
            raise EOFError(f"the body ends after {len(got)} of {size} bytes")
        return got

    def chunk(self):
        data = self.exactly(int(self.line(), 16))
        assert self.line() == ""
        return data

    def header(self):
        """The status and the fields, names in small letters. The status is 0 at the end of the connection."""
        if not self.input.peek(1):
            return 0, {}
        status = int(self.line().split()[1])
        fields = {}
        while field := self.line():
            name, value = field.split(":", 1)
            fields[name.lower()] = value.strip()
        return status, fields

    def answer(self, method="GET"):
        status, fields = self.header()
        body = b""
        if fields.get("transfer-encoding") == "chunked":
            while part := self.chunk():
                body += part
        elif method != "HEAD" and "content-length" in fields:
            body = self.exactly(int(fields["content-length"]))
        return Answer(status, fields, body)

    def at_end(self):
        return self.input.read(1) == b""

    def close(self):
        self.input.close()
        self.socket.close()
