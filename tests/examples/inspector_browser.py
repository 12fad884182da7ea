"""The inspector's page of the servers, in Chromium: inspector_browser.py FOLDER_OF_THE_EXAMPLE_PROGRAMS

Leaves inspector.png, what the page looks like, in that folder.
"""

import json
import pathlib
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
    """A server with an inspector: `page` is its address."""

    def __init__(self, name, *arguments, inspect="0"):
        self.process = subprocess.Popen([programs / name, "--port", "0", "--inspect", inspect, *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(self.process)
        self.page = self.line("inspector on ").strip()
        self.port = int(self.line("listening on ").rpartition(":")[2])

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


def refused(server, path, status, **headers):
    try:
        server.get(path, **headers)
    except urllib.error.HTTPError as error:
        assert error.code == status, error
        return error.read().decode()
    raise AssertionError(f"{path} was answered")


def the_page_shows_fibers_that_come_and_go():
    server = Inspected("kv_server")
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    driver = browser(profile, "1240,1000")
    try:
        driver.get(server.page)
        # The page draws its rows again each second, so a row that was found may be gone: a script reads them in one
        # step.
        read = lambda script: driver.execute_script("return " + script)
        text = lambda place: read(f"document.getElementById('{place}').innerText")
        rows = lambda: read("Array.from(document.querySelectorAll('#groups tr'), row => row.innerText)")
        wait = WebDriverWait(driver, BOUND)
        wait.until(lambda _: "waits to read descriptor" in text("groups"))
        wait.until(lambda _: any(row.split()[:1] == ["20"] for row in rows()))
        assert text("state") == "live"
        wait.until(lambda _: "sleeps" in text("workers") or "runs" in text("workers"))
        assert "No fiber waits for another" in text("graph")
        driver.find_element(By.ID, "search").send_keys(f"main.cpp:{place_of_serve}")
        wait.until(lambda _: len(rows()) <= 2)
        read("document.querySelector('#groups summary').click()")
        wait.until(lambda _: "read" in text("groups"))
        driver.save_screenshot(str(programs / "inspector.png"))
        for client in clients:
            client.close()
        driver.find_element(By.ID, "search").clear()
        driver.find_element(By.ID, "search").send_keys("descriptor")
        wait.until(lambda _: not any(row.split()[:1] == ["20"] for row in rows()))
        server.end()
        wait.until(lambda _: text("state").startswith("no answer"))
        errors = [entry for entry in driver.get_log("browser") if "favicon" not in entry["message"] and "dump.json" not in entry["message"]]
        assert not errors, errors
    finally:
        driver.quit()


def what_programs_ask_for():
    with tempfile.TemporaryDirectory() as folder:
        server = Inspected("http_server", folder)
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
    server = Inspected("kv_server")
    assert "no such page" in refused(server, "nothing", 404)
    assert "this host is not meant" in refused(server, "", 403, Host="evil.example")
    assert "from 1 to 10000" in refused(server, "trace?ms=0", 400)
    assert "from 1 to 10000" in refused(server, "trace", 400)
    second = subprocess.run([programs / "kv_server", "--port", "0", "--inspect", server.page.split(":")[2].strip("/")],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=BOUND)
    assert second.returncode == 1 and "Address already in use" in second.stderr, second
    server.end()


def clean_up():
    for process in running:
        process.kill()
        process.wait()
    shutil.rmtree(profile, ignore_errors=True)


try:
    run_all([the_page_shows_fibers_that_come_and_go, what_programs_ask_for, what_is_refused])
finally:
    clean_up()
