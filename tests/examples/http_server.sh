#!/bin/sh
# What examples/http_server answers, over HTTP and HTTPS: sh http_server.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/http.sh"

# get STATUS TARGET ARGUMENT...: header in the file header, body in the file body.
get() {
  wanted=$1 target=$2
  shift 2
  got=$(curl -sS -m 60 --cacert cert.pem --path-as-is -D header -o body -w '%{http_code}' "$@" "$url$target")
  [ "$got" = "$wanted" ] || fail "$scheme $target $*: status $got instead of $wanted"
}

has() { grep -qiF -- "$1" header || { fail "$scheme $target: no \"$1\" in:"; cat header >&2; }; }

same_as() { cmp -s body "$1" || fail "$scheme $target: the body is not $1"; }

# raw TEXT: sends it as it is and puts all that is answered into the file raw.
raw() {
  python "raw client" "$1" <<'PYTHON'
import sys
from http_client import Client
client = Client(sys.argv[1])
client.send(sys.argv[3].encode().decode("unicode_escape"))
open("raw", "wb").write(client.input.read())
PYTHON
}

# range HEADER STATUS CONTENT_RANGE TEXT
range() {
  get "$2" /ten.txt -H "Range: $1"
  [ -z "$3" ] || has "Content-Range: bytes $3"
  [ "$2" = 416 ] || [ "$(cat body)" = "$4" ] || fail "Range $1: got $(cat body)"
}

# refuses_to_start WHAT TEXT ARGUMENT...: status not 0, TEXT on stderr.
refuses_to_start() {
  what=$1 text=$2
  shift 2
  timeout 60 "$programs/http_server" "$@" >refusal 2>&1 && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}

# ---- a site ----
mkdir -p site/sub/deep outside site/empty
printf '<h1>home</h1>\n' >site/index.html
printf '<h1>sub</h1>\n' >site/sub/index.html
printf '0123456789' >site/ten.txt
printf 'spaced' >'site/a b.css'
: >site/nothing.json
head -c 16000000 /dev/urandom >site/big.bin
printf 'secret' >outside/secret.txt
ln -s ../outside/secret.txt site/leak.txt
ln -s ../outside site/leak
ln -s ten.txt site/alias.txt
mkfifo site/pipe
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("site/socket")'
sum_of_big=$(sha256sum <site/big.bin | cut -d' ' -f1)

check_files() {
  get 200 / && same_as site/index.html
  has "Content-Type: text/html"
  has "Content-Length: 14"
  has "Server: ulexite-http"
  has "Date: "
  get 200 '/index.html?query=1' && same_as site/index.html
  get 200 /sub/ && same_as site/sub/index.html
  get 301 '/sub?q' && has "Location: /sub/?q"
  get 301 //sub && has "Location: /sub/"
  get 404 /empty/
  mv site/index.html kept.html && mkdir site/index.html
  get 404 /
  rmdir site/index.html && mv kept.html site/index.html
  get 200 /ten.txt && same_as site/ten.txt && has "Content-Type: text/plain"
  get 200 /alias.txt && same_as site/ten.txt
  get 200 '/a%20b.css' && same_as 'site/a b.css' && has "Content-Type: text/css"
  get 200 /nothing.json && same_as site/nothing.json && has "Content-Length: 0"
  get 200 /big.bin && has "Content-Type: application/octet-stream"
  [ "$(sha256sum <body | cut -d' ' -f1)" = "$sum_of_big" ] || fail "$scheme: a large file has another SHA-256"
  get 404 /missing.txt
  get 404 /ten.txt/
  get 404 /ten.txt/x
  get 404 /pipe
  get 404 /socket
  for target in /../outside/secret.txt /%2e%2e/outside/secret.txt /sub/../../outside/secret.txt \
    /..%2foutside%2fsecret.txt /leak.txt /leak/secret.txt /leak/ //..//outside/secret.txt \
    /sub/%2E%2E/%2E%2E/outside/secret.txt; do
    get 404 "$target"
    grep -q secret body && fail "$target: the secret is out"
  done
  get 200 /sub/../ten.txt && same_as site/ten.txt
}

check_conditions() {
  curl -sSI -m 60 --cacert cert.pem "$url/ten.txt" | tr -d '\r' >about
  since=$(sed -n 's/^Last-Modified: //p' about) tag=$(sed -n 's/^ETag: //p' about)
  get 304 /ten.txt -H "If-Modified-Since: $since" && has "ETag: $tag"
  get 304 /ten.txt -H "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT"
  get 200 /ten.txt -H "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"
  get 200 /ten.txt -H "If-Modified-Since: tomorrow"
  get 304 /ten.txt -H "If-None-Match: $tag"
  get 304 /ten.txt -I -H "If-None-Match: \"x\", W/$tag"
  get 304 /ten.txt -H "If-None-Match: *"
  get 200 /ten.txt -H 'If-None-Match: "x"' -H "If-Modified-Since: $since"
  get 304 /ten.txt -H 'If-None-Match: "x"' -H "If-None-Match: $tag"
  for form in '%A, %d-%b-%y %T GMT' '%a %b %e %T %Y'; do
    old=$(LC_ALL=C date -u -d "$since" "+$form")
    get 304 /ten.txt -H "If-Modified-Since: $old"
    get 206 /ten.txt -H "Range: bytes=0-3" -H "If-Range: $old"
  done
  get 304 /ten.txt -H "If-Modified-Since: $(LC_ALL=C date -u -d '49 years' '+%A, %d-%b-%y %T GMT')"
  get 200 /ten.txt -H "If-Modified-Since: $(LC_ALL=C date -u -d '49 years ago' '+%A, %d-%b-%y %T GMT')"
  for range in '' 'Range: bytes=5-'; do
    met=$([ -z "$range" ] && echo 200 || echo 206)
    get $met /ten.txt -H "$range" -H "If-Match: \"x\", $tag" && has "ETag: $tag"
    get $met /ten.txt -H "$range" -H 'If-Match: "x"' -H "If-Match: $tag"
    get $met /ten.txt -H "$range" -H 'If-Match: *' -H "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"
    get 412 /ten.txt -H "$range" -H 'If-Match: "x"' && expect_text "If-Match" body "412 Precondition Failed"
    get 412 /ten.txt -H "$range" -H "If-Match: W/$tag"
    get 412 /ten.txt -H "$range" -H 'If-Match: "x"' -H "If-None-Match: $tag"
    get $met /ten.txt -H "$range" -H "If-Unmodified-Since: $since"
    get $met /ten.txt -H "$range" -H "If-Unmodified-Since: tomorrow"
    get 412 /ten.txt -H "$range" -H "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"
  done
  get 404 /missing.txt -H 'If-Match: *'
  get 206 /ten.txt -H "Range: bytes=0-3" -H "If-Range: $since"
  get 206 /ten.txt -H "Range: bytes=0-3" -H "If-Range: $tag"
  get 200 /ten.txt -H "Range: bytes=0-3" -H 'If-Range: "x"'
  get 200 /ten.txt -H "Range: bytes=0-3" -H "If-Range: Thu, 01 Jan 1970 00:00:00 GMT"
  get 200 /big.bin -I && has "Content-Length: 16000000"
  get 404 /missing.txt -I
}

check_ranges() {
  range bytes=2-4 206 2-4/10 234
  range bytes=0-0 206 0-0/10 0
  range bytes=7- 206 7-9/10 789
  range bytes=5-100 206 5-9/10 56789
  range bytes=-3 206 7-9/10 789
  range bytes=-30 206 0-9/10 0123456789
  range bytes=9-99999999999999999999999 206 9-9/10 9
  range bytes=10- 416 '*/10' ''
  range bytes=-0 416 '*/10' ''
  range bytes=4-2 200 '' 0123456789
  range bytes=0-1,3-4 200 '' 0123456789 # several: all of it
  range lines=0-1 200 '' 0123456789
  range bytes=x 200 '' 0123456789
  get 200 /ten.txt -I -H "Range: bytes=0-3" && has "Content-Length: 10"
  get 206 /big.bin -r 1000000-2499999
  tail -c +1000001 site/big.bin | head -c 1500000 >part && same_as part
}

check_programs() {
  get 200 /hello && [ "$(cat body)" = hello ] || fail "$scheme /hello: $(cat body)"
  told="{\"bytes\":16000000,\"sha256\":\"$sum_of_big\"}"
  get 200 /upload -T site/big.bin && [ "$(cat body)" = "$told" ] || fail "$scheme upload: $(cat body)"
  get 200 /upload -X POST -H 'Transfer-Encoding: chunked' -T - <site/big.bin
  [ "$(cat body)" = "$told" ] || fail "$scheme chunked upload: $(cat body)"
  get 200 /upload -T site/nothing.json && expect_text "an empty upload" body '{"bytes":0,"sha256":"e3b0c44298fc1c14'
  get 200 /echo -H 'Transfer-Encoding: chunked' -T site/big.bin && same_as site/big.bin && has "Transfer-Encoding: chunked"
  get 200 /echo -T site/big.bin -H 'Expect:' && same_as site/big.bin
  get 200 /echo -0 -T site/big.bin -H 'Expect:' && same_as site/big.bin && has "HTTP/1.1 200"
  get 200 /echo -d '' && [ ! -s body ] || fail "$scheme: an empty echo"
}

check_refusals() {
  get 400 /%zz
  get 400 /%2
  get 400 /a%00b
  get 405 /ten.txt -X DELETE && has "Allow: GET, HEAD"
  get 405 /ten.txt -d hello
  get 405 /ten.txt -T site/big.bin --expect100-timeout 60 # waits for its 100 Continue, in vain
  get 405 /echo && has "Allow: POST, PUT"
  get 405 /hello -d hello
  get 501 / -X BREW
  get 417 / -H 'Expect: a miracle'
  get 413 / -H 'Expect:' --data-binary @large
  get 413 / -H 'Expect:' -H 'Transfer-Encoding: chunked' --data-binary @large
  get 413 /upload -T large --expect100-timeout 60
  expect_text "413" body "the body is larger than 20000000 bytes"
  get 431 / -H "X-Long: $(head -c 20000 /dev/zero | tr '\0' x)"
  raw 'complete garbage\r\n\r\n' && expect_text garbage raw "HTTP/1.1 400"
  raw 'GET / HTTP/1.1\r\n\r\n' && expect_text "no Host" raw "HTTP/1.1 400"
  for host in 'a b' a/b 'a, b' a@b a:b '[::1' '[x]' '::1'; do
    raw "GET / HTTP/1.1\r\nHost: $host\r\n\r\n" && expect_text "Host: $host" raw "HTTP/1.1 400"
  done
  for host in '' x: x.example:80 127.0.0.1 '[::1]' '[::1]:80' a_b%20c; do
    raw "GET /hello HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n" && expect_text "Host: $host" raw "HTTP/1.1 200"
  done
  raw '\r\nPOST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfives\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  [ "$(grep -c '^HTTP/1.1 200' raw)" = 2 ] || fail "empty lines before a request: $(cat raw)"
  raw 'HEAD / HTTP/1.1\r\n\r\n' && expect_text "HEAD without a Host" raw "HTTP/1.1 400"
  [ -z "$(tail -n 1 raw | tr -d '\r')" ] || fail "the refusal of HEAD has a body"
  raw 'GET /hello HTTP/1.1\r\nHost: x\r\nConnection: y\r\nConnection: close\r\n\r\n'
  expect_text "a second Connection" raw "Connection: close"
  raw 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n' && expect_text "two Hosts" raw "HTTP/1.1 400"
  raw 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n' && expect_text "length" raw "HTTP/1.1 400"
  raw 'POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n' && expect_text "chunk" raw "HTTP/1.1 400"
  raw 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n'
  expect_text "both lengths" raw "HTTP/1.1 400"
  raw 'POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n'
  expect_text "an unknown encoding" raw "HTTP/1.1 501"
  for encoding in '' 'chunked, x' '\r\nTransfer-Encoding: gzip'; do
    raw "POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: $encoding\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
    expect_text "Transfer-Encoding: $encoding" raw "HTTP/1.1 501"
    [ "$(grep -c '^HTTP/1.1' raw)" = 1 ] || fail "Transfer-Encoding: $encoding: its body was taken for a request"
  done
  raw 'POST /upload HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hello HTTP/1.0\r\n\r\n'
  expect_text "an encoding in HTTP/1.0" raw "HTTP/1.1 400"
  grep -q hello raw && fail "after an encoding in HTTP/1.0 the connection went on"
  raw 'GET / HTTP/1.0\r\n\r\n' && expect_text "HTTP/1.0" raw "<h1>home</h1>" && expect_text "HTTP/1.0" raw "HTTP/1.1 200"
  raw 'GET http://x/ten.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  expect_text "absolute target" raw "0123456789"
  raw 'GET http://x?query=/ten.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  expect_text "absolute target without a path" raw "<h1>home</h1>"
  raw 'POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello'
  expect_text "an expectation of HTTP/1.0" raw "hello"
  grep -q '100 Continue' raw && fail "HTTP/1.0 was told to continue"
}

check_connections() {
  connects=$(curl -sS -m 60 --cacert cert.pem -o /dev/null -o /dev/null -o /dev/null -w '%{num_connects} ' \
    "$url/" "$url/missing" "$url/ten.txt")
  [ "$connects" = "1 0 0 " ] || fail "$scheme keep-alive: connects were $connects"
  connects=$(curl -sS -m 60 --cacert cert.pem -H 'Connection: close' -o /dev/null -o /dev/null -w '%{num_connects} ' \
    "$url/" "$url/ten.txt")
  [ "$connects" = "1 1 " ] || fail "$scheme Connection: close: connects were $connects"
  python "pipeline" <<'PYTHON'
import sys
from http_client import Client
client = Client(sys.argv[1])
get = "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n"
post = "POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfives\r\n0\r\n\r\n"
rounds = 50
client.send((get % ("/ten.txt", "") + post + get % ("/missing", "")) * rounds + get % ("/sub/", "Connection: close\r\n"))
for _ in range(rounds):
    assert client.answer().body == b"0123456789"
    assert client.answer().body.startswith(b'{"bytes":5,')
    assert client.answer().status == 404
last = client.answer()
assert last.body == b"<h1>sub</h1>\n" and last.header["connection"] == "close"
assert client.at_end()
PYTHON
  python "an echo before the end of the request" <<'PYTHON'
import sys
from http_client import Client
client = Client(sys.argv[1])
client.ask("/echo", "POST", "Transfer-Encoding: chunked\r\n")
for word in (b"hello", b"world"):
    client.send(b"5\r\n%s\r\n" % word)
    if word == b"hello":
        assert client.header()[0] == 200
    assert client.chunk() == word
client.send("0\r\n\r\n")
assert client.chunk() == b""
client.ask("/hello")
assert client.answer().body == b"hello\n"
PYTHON
}

check_load() {
  wrk -t2 -c64 -d2s --timeout 60s "$url/$1" >load 2>&1 || fail "wrk: status $?"
  grep -qE 'Socket errors|Non-2xx|unable' load && { fail "$scheme, wrk:"; cat load >&2; }
  expect_text "wrk" load "requests in"
}

# ---- all of it, twice ----
head -c 20000001 /dev/zero >large
for scheme in http https; do
  serve $scheme --threads 2 --body-size 20000000
  check_files
  check_conditions
  check_ranges
  check_programs
  check_refusals
  check_connections
  check_load hello
  check_load ten.txt
  stop INT 0
  [ -s err ] && { fail "$scheme: stderr is"; cat err >&2; }
  grep -q '^served [1-9][0-9]* requests on [1-9][0-9]* connections$' out || fail "no count: $(cat out)"
done

# ---- what HTTPS refuses ----
serve https
python "TLS 1.1" <<'PYTHON'
import socket, ssl, sys, urllib.parse
port = urllib.parse.urlsplit(sys.argv[1]).port
def version_with(newest):
    tls = ssl.create_default_context(cafile="cert.pem")
    tls.set_ciphers("DEFAULT@SECLEVEL=0")  # lets this side speak it
    tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1, newest
    with socket.create_connection(("127.0.0.1", port), timeout=60) as tcp, \
         tls.wrap_socket(tcp, server_hostname="127.0.0.1") as secure:
        return secure.version()
assert version_with(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
assert version_with(ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
try:
    sys.exit(version_with(ssl.TLSVersion.TLSv1_1) + " was accepted")
except ssl.SSLError as error:
    assert "PROTOCOL_VERSION" in error.reason, error
PYTHON
curl -s -m 60 "http://127.0.0.1:$port/" -o body && fail "HTTP on the port of HTTPS was answered"
get 200 /hello

# ---- how it refuses to start ----
refuses_to_start "port in use" "127.0.0.1:$port: Address already in use" site --port "$port"
stop TERM 0
refuses_to_start "missing directory" "$scratch/none" "$scratch/none" --port 0
refuses_to_start "no directory at all" "DIR" --port 0
refuses_to_start "file instead of a directory" "Not a directory" site/ten.txt --port 0
refuses_to_start "unknown option" "--nonsense" site --nonsense
refuses_to_start "bad address" "no IPv4 address" site --bind nowhere --port 0
refuses_to_start "certificate without a key" "--key" site --port 0 --cert cert.pem
refuses_to_start "missing certificate" 'cannot use the certificate "none.pem"' site --port 0 --cert none.pem --key key.pem
refuses_to_start "certificate for a key" 'cannot use the private key "cert.pem"' site --port 0 --cert cert.pem --key cert.pem
refuses_to_start "log that cannot be opened" "cannot append to \"site\"" site --port 0 --access-log site
refuses_to_start "bad time" "--idle-time" site --port 0 --idle-time 0
refuses_to_start "bad size" "--body-size" site --port 0 --body-size many
"$programs/http_server" --help >help || fail "--help: status not 0"
expect_text "help" help "--port"

finish http_server
