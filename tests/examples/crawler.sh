#!/bin/sh
# Lets examples/crawler visit sites on loopback whose links are known: sh crawler.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/example.sh"

# crawl STATUS ARGUMENT...: what it says is in out.
crawl() {
  wanted=$1
  shift
  "$programs/crawler" --timeout 60000 --back-off 1 "$@" >out 2>err
  status=$?
  [ $status -eq "$wanted" ] || { fail "$*: status $status instead of $wanted"; cat out err >&2; }
}

# visited WHAT: the lines of standard input are those of the report, whose URLs have lost the site.
visited() {
  sed "s|$url||g" out >told
  cmp -s told - <<EXPECTED || { fail "$1: not the report expected, but:"; cat told >&2; }
$(cat)
EXPECTED
}

# ---- files by examples/http_server: a cycle, a missing page, other hosts ----
mkdir -p site/sub/deep
cat >site/index.html <<'HTML'
<!DOCTYPE html><!-- <a href="in_a_comment.html"> -->
<a href="a.html">a</a> <A class="x" HREF='sub/'>sub</A> <a name=here>no link</a> <a href=a.html#part>again</a>
<a href="http://example.invalid/">elsewhere</a> <a href="mailto:nobody@example.invalid">mail</a>
<a href="https://127.0.0.1/">another scheme</a> <abbr href="not_a_link.html">abbr</abbr>
<a href="missing.html">missing</a> <a href="ten.txt">text</a> <a href="">itself</a>
HTML
echo '<a href="/">home</a> <a href="./sub/../a.html">itself</a> <a href=b.html>b</a>' >site/a.html
echo '<a href="a.html">back</a> <a href="/missing.html">missing</a> <a href="../../sub/deep/c.html?x=1&amp;y=2">c</a>' \
  >site/b.html
echo '<a href="../a.html">a</a> <a href="deep">deep, without the slash</a>' >site/sub/index.html
echo '<a href="c.html">c</a>' >site/sub/deep/index.html
echo '<a href="//HOST/sub/">sub</a> <a href="/a.html">a</a>' >site/sub/deep/c.html
echo '<a href="not_html.html">' >site/ten.txt
echo '<a href="/">nobody leads here</a>' >site/island.html
"$programs/http_server" site --port 0 >server.out 2>err &
server=$!
await 'serving ' server.out $server
url=$(sed -n 's|^serving .* on \(http://.*\)/$|\1|p' server.out)
sed -i "s|HOST|${url#http://}|" site/sub/deep/c.html

for threads in 1 2 4; do
  for concurrency in 1 8; do
    crawl 1 --threads $threads --concurrency $concurrency "$url"
    visited "$threads threads, $concurrency requests" <<'EXPECTED'
200  /
200  /a.html
200  /b.html
404  /missing.html
200  /sub/
301  /sub/deep
200  /sub/deep/
200  /sub/deep/c.html
200  /sub/deep/c.html?x=1&y=2
200  /ten.txt
broken link: / -> /missing.html (404)
broken link: /b.html -> /missing.html (404)
complete: 10 of 10 pages visited, 1 broken, 3 links to elsewhere
EXPECTED
  done
done
crawl 1 "$url/sub/deep/c.html#part" --max-pages 2
expect_text "--max-pages" out "page limit: 2 of 2 pages visited, 0 broken"
echo '<a href="http://a/">a</a> <a href="http://b/">b</a> <a href="http://a/">a</a> <a href="http://c/">c</a>
  <a href="http://d/">d</a> <a href="ten.txt">text</a>' >site/many.html
crawl 0 "$url/many.html" --max-links 2
expect_text "--max-links" out "complete: 2 of 2 pages visited, 0 broken, 2 links to elsewhere, and 3 links were not kept"
crawl 0 "$url/many.html" --max-links 5 --json
expect_text "--max-links --json" out '"elsewhere":["http://a/","http://b/","http://c/","http://d/"],"links_not_kept":0'
rm site/many.html
crawl 0 "http://localhost:${url##*:}/ten.txt"
expect_text "a name" out "200  http://localhost:${url##*:}/ten.txt"
crawl 1 --json "$url/"
python3 - "$url" <<'PYTHON' || fail "--json: $(cat out)"
import json, sys
url, found = sys.argv[1], json.load(open("out"))
pages = {page["url"].removeprefix(url): page for page in found["pages"]}
assert set(pages) == {"/", "/a.html", "/b.html", "/missing.html", "/sub/", "/sub/deep", "/sub/deep/", "/sub/deep/c.html",
                      "/sub/deep/c.html?x=1&y=2", "/ten.txt"}
missing = pages["/missing.html"]
assert missing["status"] == 404 and missing["broken"] and missing["attempts"] == 1
assert missing["linked_from"] == [url + "/", url + "/b.html"]
assert not pages["/"]["broken"] and pages["/sub/deep"]["status"] == 301
assert found["elsewhere"] == ["http://example.invalid/", "https://127.0.0.1/", "mailto:nobody@example.invalid"]
assert (found["ending"], found["visited"], found["broken"]) == ("complete", 10, 1)
PYTHON
kill -TERM $server && wait $server || fail "the server ended with $?"

# ---- a server that misbehaves ----
cat >server.py <<'PYTHON'
import http.server, socket, sys, threading, time

def links(*targets): return "".join('<a href="%s">x</a>' % target for target in targets)

pages = {
    "/": links("/flaky", "/down", "/drops", "/garbage", "/chunked"),
    "/after_flaky": links("/"),
    "/early": links("/plain"),
    "/meeting": links("/meet1", "/meet2", "/meet3"),
    "/waiting": links("/unanswered"),
}
asked, lock, all_met = {}, threading.Lock(), threading.Barrier(3)

class handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        with lock:
            asked[self.path] = count = asked.get(self.path, 0) + 1
            print("asked for", self.path, flush=True)
        if self.path == "/early":  # the answer follows those before it
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        if self.path in pages: self.answer(200, pages[self.path])
        elif self.path == "/flaky": self.answer(503 if count <= 2 else 200, links("/after_flaky"))
        elif self.path == "/down": self.answer(500, links("/never"))
        elif self.path == "/drops": self.close_connection = True
        elif self.path == "/garbage":
            self.wfile.write(b"this is no HTTP\r\n\r\n")
            self.close_connection = True
        elif self.path == "/chunked":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in links("/in_two_parts").partition("two"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part.encode()))
            self.wfile.write(b"0\r\n\r\n")
        elif self.path == "/plain": self.answer(200, "")
        elif self.path.startswith("/meet"):  # none is answered before all are asked for
            all_met.wait()
            self.answer(200, "")
        elif self.path in ("/hangs", "/unanswered"): time.sleep(1000)
        elif self.path.startswith("/large"):  # the body of a file has no links, and need not come
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if "html" in self.path else "application/zip")
            self.send_header("Content-Length", "1000000000")
            self.end_headers()
            self.close_connection = True
        elif self.path == "/hangs_in_the_body":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"the beginning")
            time.sleep(1000)
        else: self.answer(404, "")

nobody = socket.socket()  # bound, but it does not listen
nobody.bind(("127.0.0.1", 0))
print("nobody listens on", nobody.getsockname()[1])
http.server.ThreadingHTTPServer.daemon_threads = True
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print("listening on", server.server_port, flush=True)
server.serve_forever()
PYTHON
rm server.out  # the other server's, see await
python3 server.py >server.out 2>server.err &
server=$!
await 'listening on ' server.out $server
url=http://127.0.0.1:$(sed -n 's/^listening on //p' server.out)
nobody=http://127.0.0.1:$(sed -n 's/^nobody listens on //p' server.out)

# A page that fails twice and then does not, and pages that never do.
crawl 1 --attempts 4 "$url/"
visited "a server that misbehaves" <<'EXPECTED'
200  /
200  /after_flaky
200  /chunked
500  /down  (4 attempts)
reading the answer: end of stream  /drops  (4 attempts)
200  /flaky  (3 attempts)
reading the answer: bad version  /garbage  (4 attempts)
404  /in_two_parts
broken link: / -> /down (500)
broken link: / -> /drops (reading the answer: end of stream)
broken link: / -> /garbage (reading the answer: bad version)
broken link: /chunked -> /in_two_parts (404)
complete: 8 of 8 pages visited, 4 broken, 0 links to elsewhere
EXPECTED

# Requests are under way at the same time: these three wait for each other.
crawl 0 --concurrency 3 "$url/meeting"
expect_text "three at the same time" out "complete: 4 of 4 pages visited, 0 broken"

crawl 0 "$url/early"
visited "interim answers" <<'EXPECTED'
200  /early
200  /plain
complete: 2 of 2 pages visited, 0 broken, 0 links to elsewhere
EXPECTED

crawl 0 "$url/large"
visited "a large file" <<'EXPECTED'
200  /large
complete: 1 of 1 pages visited, 0 broken, 0 links to elsewhere
EXPECTED

crawl 1 --attempts 1 "$url/large.html"
expect_text "a large page" out "reading the answer: body limit exceeded  $url/large.html"

# Each request has its time.
for page in hangs hangs_in_the_body; do
  "$programs/crawler" --timeout 100 --attempts 2 --back-off 1 "$url/$page" >out 2>err && fail "$page: status 0"
  visited "$page" <<EXPECTED
timeout  /$page  (2 attempts)
complete: 1 of 1 pages visited, 1 broken, 0 links to elsewhere
EXPECTED
done

# All together have theirs.
crawl 1 --deadline 300 "$url/hangs"
visited "deadline" <<'EXPECTED'
not visited  /hangs
deadline: 0 of 1 pages visited, 0 broken, 0 links to elsewhere
EXPECTED

# A signal ends it, and what it has found is reported. Nobody has asked for /unanswered before: the server may tell late
# of what others have asked for.
for signal in INT TERM; do
  : >server.out
  "$programs/crawler" --timeout 60000 "$url/waiting" >out 2>err &
  running=$!
  await 'asked for /unanswered' server.out $running
  kill -$signal $running
  wait $running
  status=$?
  running=
  [ $status -gt 128 ] && [ "$(kill -l $status)" = $signal ] || fail "SIG$signal: status $status"
  visited "SIG$signal" <<EXPECTED
not visited  /unanswered
200  /waiting
SIG$signal: 1 of 2 pages visited, 0 broken, 0 links to elsewhere
EXPECTED
done

# ---- how it refuses to start ----
# refuses WHAT TEXT ARGUMENT...
refuses() {
  what=$1 text=$2
  shift 2
  "$programs/crawler" "$@" >refusal 2>&1 </dev/null && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}
refuses "nobody listens" "Connection refused" "$nobody/"
refuses "another scheme" '"https://127.0.0.1/" is not of the form http://' https://127.0.0.1/
refuses "no scheme" '"127.0.0.1/index.html" is no URL' 127.0.0.1/index.html
refuses "no host" '"http:/x" is not of the form http://' http:/x
refuses "garbage" '"http://a b/" is no URL' 'http://a b/'
refuses "no URL" "URL is required"
refuses "unknown option" "--nonsense" "$url/" --nonsense
refuses "no requests" "Value 0 not in range" "$url/" --concurrency 0
refuses "no time" "Value 0 not in range" "$url/" --timeout 0
"$programs/crawler" --json "$url/after" >/dev/full 2>refusal && fail "a full disk: status 0"
expect_text "a full disk" refusal "No space left on device"
"$programs/crawler" --help >help || fail "--help: status not 0"
expect_text "help" help "--deadline"

finish crawler
