"""The inspector's page in Chromium, of the servers and of a program that hangs (inspector_browser.cpp):
inspector_browser.py FOLDER_OF_THE_EXAMPLE_PROGRAMS

Leaves inspector.png, what the page looks like, in that folder.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import browser
from example import BOUND, run_all

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

programs = pathlib.Path(sys.argv[1]).resolve()
kv_server = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/kv_server/main.cpp"
place_of_serve = next(number for number, line in enumerate(kv_server.read_text().splitlines(), 1) if ".serve(" in line)
profile = tempfile.mkdtemp()
running = []


class Inspected:
    """A program with an inspector: `page` is its address."""

    def __init__(self, name, *arguments, **environment):
        self.process = subprocess.Popen([programs / name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=os.environ | environment)
        running.append(self.process)
        self.page = self.line("inspector on ").strip()

    def line(self, begin):
        while True:
            line = self.process.stdout.readline()
            assert line, f"no line that begins with {begin!r}"
            if line.startswith(begin):
                return line[len(begin):]

    def get(self, path, **headers):
        return urllib.request.urlopen(urllib.request.Request(self.page + path, headers=headers), timeout=BOUND)

    def end(self):
        self.process.terminate()
        assert self.process.wait(timeout=BOUND) == 0, self.process.stderr.read()


class Server(Inspected):
    def __init__(self, name, *arguments, **environment):
        super().__init__(name, "--port", "0", "--inspect", "0", *arguments, **environment)
        self.port = int(self.line("listening on ").rpartition(":")[2])


def refused(server, path, status, **headers):
    try:
        server.get(path, **headers)
    except urllib.error.HTTPError as error:
        assert error.code == status, error
        return error.read().decode()
    raise AssertionError(f"{path} was answered")


class Page:
    """The page of a program in the browser. The page draws its rows again each second, so a row that was found may be
    gone: a script reads them in one step."""

    def __init__(self, inspected):
        driver.get(inspected.page)

    def read(self, script):
        return driver.execute_script("return " + script)

    def run(self, script):
        driver.execute_script(script)

    def text(self, place):
        return self.read(f"document.getElementById('{place}').innerText")

    def all(self, selector, what="innerText"):
        return self.read(f"Array.from(document.querySelectorAll('{selector}'), it => it.{what})")

    def wait_until(self, condition):
        try:
            WebDriverWait(driver, BOUND, poll_frequency=0.05).until(lambda _: condition())
        except TimeoutError as late:
            raise TimeoutError(f"{late}; the page said: {self.text('findings')}") from late

    def search(self, words):
        box = driver.find_element(By.ID, "search")
        box.clear()
        box.send_keys(words)

    def errors(self):
        """Also of requests, so that of an icon."""
        return [entry for entry in driver.get_log("browser") if "dump.json" not in entry["message"]]


def the_page_shows_fibers_that_come_and_go():
    server = Server("kv_server")
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    page = Page(server)
    counts = lambda: page.all("#groups td.right")
    page.wait_until(lambda: "to read descriptor" in page.text("groups"))
    page.wait_until(lambda: "20" in counts())
    assert page.text("state") == "live"
    assert page.text("program") == "kv_server" and f"pid {server.process.pid}, " in page.text("process")
    assert "Nothing found" in page.text("findings")
    page.wait_until(lambda: "sleeps" in page.text("workers") or "runs" in page.text("workers"))
    assert "No fiber waits for another" in page.text("graph")
    assert page.read("[document.getElementById('legend').hidden, document.getElementById('threads-head').hidden]") == [True, True]
    page.read("document.querySelector('#kinds button').click()")  # what most of them do
    assert "wait to read descriptor" in page.all("#kinds button")[0] and "20" in counts()
    assert all("to read descriptor" in row for row in page.all("#groups tr"))
    page.search(f"main.cpp:{place_of_serve}")
    page.wait_until(lambda: len(counts()) <= 2)
    page.read("document.querySelector('#groups button').click()")
    page.wait_until(lambda: "read" in page.text("groups"))
    for client in clients:
        client.close()
    page.search("descriptor")
    page.wait_until(lambda: "20" not in counts())
    server.end()
    page.wait_until(lambda: page.text("state").startswith("no answer"))
    assert not page.errors()


def without_times(text):
    return re.sub(r"[\d.]+ (ms|s|min)\b", "TIME", text)


def overlap(a, b):
    return a["left"] < b["right"] and b["left"] < a["right"] and a["top"] < b["bottom"] and b["top"] < a["bottom"]


def boxes_stand_apart(page):
    boxes = page.all(".node", "getBoundingClientRect().toJSON()")
    assert len(boxes) in range(8, 12), boxes
    assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i]), boxes
    return boxes


def the_page_of_a_program_that_hangs():
    hung = Inspected("inspector_browser", "300", "3000", "3", "1")
    page = Page(hung)
    it_says_what_the_dump_says(page, hung)
    alike_waiters_are_one_box(page)
    a_circle_is_red_and_in_the_middle(page)
    driver.save_screenshot(str(programs / "inspector.png"))
    it_is_dark_and_narrow_if_asked(page)
    only_what_is_new_is_kept_and_told(page)
    assert not page.errors()
    the_dump_has_groups(hung)
    it_asks_seldom_without_an_answer(page)
    hung.process.kill()  # its hog keeps a processor


def it_says_what_the_dump_says(page, hung):
    """The stuck worker comes first, with its backtrace; then the circle. The words are those of the text dump."""
    page.wait_until(lambda: "has not switched for" in page.all(".finding")[0] if page.all(".finding") else False)
    frame = "parse(std::atomic<unsigned int>&)"

    def has_backtrace():
        text = page.all(".finding")[0]
        if frame not in text and "no backtrace" in text:  # on a loaded machine the thread answers too late
            driver.execute_script("document.querySelector('.finding button').click()")
        return frame in text

    page.wait_until(has_backtrace)
    page.wait_until(lambda: len(page.all(".finding")) == 4)
    assert page.all(".finding", "className")[:2] == ["finding bad"] * 2
    dump = hung.get("dump.txt").read().decode()
    assert [without_times(text) for text in page.all(".finding > p")] == \
        [without_times(line.removeprefix("found: ")) for line in dump.splitlines() if line.startswith("found: ")]
    assert page.all(".finding > p")[1].startswith("circle: fiber #")
    assert any('holds mutex "the table"' in text for text in page.all(".finding b")), page.all(".finding b")
    assert [re.sub(r"0x[0-9a-f]+|\d+", "N", without_times(text)) for text in page.all("#threads > div")] == \
        ['thread N: runs a blocking call of fiber #N "loader" for TIME', "plain thread N: waits TIME for event N"], page.text("threads")
    assert sum("a coroutine" in text for text in page.all("#groups small")) == 1
    assert frame in hung.get("dump.txt?stuck").read().decode()
    assert frame not in dump


def await_drawing(page):
    drawn = page.read("last.at")
    page.wait_until(lambda: page.read("last.at") > drawn)


def alike_waiters_are_one_box(page):
    boxes_stand_apart(page)
    group = "Array.from(document.querySelectorAll('details.node')).find(it => it.innerText.includes('client'))"
    assert page.read(group + ".innerText").startswith('300 fibers "client"\n'), page.read(group + ".innerText")
    page.read(group + ".firstChild.click()")
    await_drawing(page)  # it stays open
    lines = page.read(group + ".querySelector('.list').innerText").splitlines()
    assert len(lines) == 17 and lines[0].startswith('fiber #') and lines[-1] == "and 284 more alike", lines
    page.read(group + ".firstChild.click()")


def a_circle_is_red_and_in_the_middle(page):
    red = page.read("getComputedStyle(document.querySelector('.finding.bad b')).color")
    assert page.all(".node.red", "querySelector(\"b\").innerText.replace(/[0-9]+/, \"N\")") == ['fiber #N "philosopher"'] * 3
    assert page.read("Array.from(document.querySelectorAll('path.red[d]'), it => getComputedStyle(it).stroke)").count(red) == 3
    ring = page.all(".node.red", "getBoundingClientRect().toJSON()")
    middle = (min(box["left"] for box in ring) + max(box["right"] for box in ring)) / 2
    assert abs(middle - page.read("document.getElementById('graph').getBoundingClientRect().toJSON()")["left"]
               - page.read("document.getElementById('graph').clientWidth") / 2) < 5, ring


def it_is_dark_and_narrow_if_asked(page):
    light = page.read("getComputedStyle(document.body).backgroundColor")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    shine = lambda what: sum(map(int, re.findall(r"\d+", page.read(f"getComputedStyle(document.body).{what}"))[:3]))
    assert light == "rgb(255, 255, 255)" and shine("backgroundColor") < 100 and shine("color") > 600
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    page.wait_until(lambda: page.read("document.getElementById('graph').clientWidth") < 400)
    page.wait_until(lambda: max(box["right"] for box in page.all(".node", "getBoundingClientRect().toJSON()")) <= 400)
    assert page.read("[innerWidth, document.documentElement.scrollWidth]") == [400, 400]
    boxes_stand_apart(page)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def only_what_is_new_is_kept_and_told(page):
    page.run("window.told = 0; new MutationObserver(() => ++told).observe("
             "document.querySelector('[aria-live]'), { childList: true, subtree: true, characterData: true })")
    page.run("stuckFrames.set('an episode before', []); open.add('closed an episode before')")
    for _ in range(2):
        await_drawing(page)
    assert page.read("told") == 0 and page.read("document.querySelector('[aria-live]').innerText") == "4 findings"
    assert page.read("[stuckFrames.size, open.has('closed an episode before')]") == [1, False]


def the_dump_has_groups(hung):
    """However many fibers there are."""
    edges = json.load(hung.get("dump.json"))["edges"]
    assert [edge["count"] for edge in edges] == [1, 1, 1, 500, 300, 1, 1], edges
    assert [edge["holder_count"] for edge in edges] == [1, 1, 1, 500, 1, 1, 1], edges
    assert max(len(edge["waiters"]) for edge in edges) == 16
    assert len(hung.get("dump.json").read()) < 30_000


def it_asks_seldom_without_an_answer(page):
    """Also if it has no backtrace of a stuck worker yet; and not again before the answer."""
    page.run("window.asks = 0; window.fetch = () => { ++asks; return new Promise(() => {}); }")
    page.wait_until(lambda: page.read("asks") == 1)
    page.run("ask(); ask()")
    assert page.read("asks") == 1
    driver.refresh()
    page.wait_until(lambda: page.text("state") == "live")
    page.run("window.asks = 0; window.fetch = async () => { ++asks; stuckFrames.clear(); throw new Error('gone'); }")
    page.wait_until(lambda: page.text("state") == "no answer: gone")
    begin = page.read("(window.begin = performance.now(), asks)")
    page.wait_until(lambda: page.read("performance.now() - begin > 1500"))
    assert page.read("asks") - begin <= 2, page.read("asks")


def a_long_circle_is_one_box():
    hung = Inspected("inspector_browser", "0", "0", "150", "0")
    page = Page(hung)
    page.wait_until(lambda: page.text("findings").startswith("circle:"))
    assert page.all(".node") == ["a circle, too long to draw\nthe findings name its fibers"], page.all(".node")
    hung.process.kill()


def what_programs_ask_for():
    with tempfile.TemporaryDirectory() as folder:
        server = Server("http_server", folder)
        dump = json.load(server.get("dump.json"))
        assert dump["fibers_live"] >= 1 and any("main" == group.get("name") for group in dump["groups"]), dump
        end = time.monotonic() + BOUND
        while b"\"main\": waits" not in (text := server.get("dump.txt").read()):  # soon after it says that it listens
            assert time.monotonic() < end, text
            time.sleep(0.01)
        assert b"ulexite_fibers_waiting{kind=\"read\"}" in server.get("metrics").read()
        trace = json.load(server.get("trace?ms=50"))
        assert any(event.get("name") == "thread_name" for event in trace["traceEvents"]), trace
        server.end()


def what_is_refused():
    server = Server("kv_server")
    assert "no such page" in refused(server, "nothing", 404)
    assert "this host is not meant" in refused(server, "", 403, Host="evil.example")
    assert "from 1 to 10000" in refused(server, "trace?ms=0", 400)
    second = subprocess.run([programs / "kv_server", "--port", "0", "--inspect", server.page.split(":")[2].strip("/")],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=BOUND)
    assert second.returncode == 1 and "Address already in use" in second.stderr, second
    server.end()


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def idle_clients_shut_nobody_out():
    server = Server("kv_server")
    address = ("127.0.0.1", int(server.page.rsplit(":", 1)[1].strip("/")))
    clients = [socket.create_connection(address) for _ in range(12)]
    for slow in clients[::2]:
        slow.sendall(b"GET /dump.json HTTP/1.1\r\n")
    assert json.load(server.get("dump.json"))["program"] == "kv_server"
    # The oldest made room, the fifth perhaps only after the answer. If the answer had waited until the inspector gives up
    # its clients, eight would be closed.
    assert not any(map(is_open, clients[:4])) and all(map(is_open, clients[5:]))
    server.end()


def the_running_trace_can_be_fetched():
    with tempfile.TemporaryDirectory() as folder:
        server = Server("kv_server", ULEXITE_TRACE=folder + "/trace.json")
        assert json.load(server.get("dump.json"))["tracing"]
        assert "is being recorded already" in refused(server, "trace?ms=50", 409)
        answer = server.get("trace")
        assert "attachment" in answer.headers["Content-Disposition"]
        fetched = json.load(answer)
        assert any(event.get("name") == "thread_name" for event in fetched["traceEvents"]), fetched
        page = Page(server)
        page.wait_until(lambda: page.text("trace") == "the running trace")
        assert page.read("document.getElementById('trace').href") == server.page + "trace"
        server.end()
        assert json.loads(pathlib.Path(folder, "trace.json").read_text())["traceEvents"]
    server = Server("kv_server")
    assert "nothing was recorded" in refused(server, "trace", 400)
    server.end()


def clean_up():
    for process in running:
        process.kill()
        process.wait()
    shutil.rmtree(profile, ignore_errors=True)


driver = browser(profile, "1240,1000")
try:
    run_all([the_page_shows_fibers_that_come_and_go, the_page_of_a_program_that_hangs, a_long_circle_is_one_box,
             what_programs_ask_for, what_is_refused, idle_clients_shut_nobody_out, the_running_trace_can_be_fetched])
finally:
    driver.quit()
    clean_up()
