"""Two pages of examples/chat talk to each other in Chromium: chat_browser.py FOLDER_OF_THE_EXAMPLE_PROGRAMS

Leaves chat.png, what one of them looks like, in that folder.
"""

import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import browser
from example import BOUND, Server, run_all

from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

programs = pathlib.Path(sys.argv[1]).resolve()
profile = tempfile.mkdtemp()


class Page:
    """A tab."""

    def __init__(self, driver, url):
        driver.switch_to.new_window("tab")
        self.driver, self.handle = driver, driver.current_window_handle
        driver.get(url)

    def find(self, selector):
        self.driver.switch_to.window(self.handle)
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        self.driver.switch_to.window(self.handle)
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector)

    def fill(self, selector, text):
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def join(self, room, name):
        self.fill("#room", room)
        self.fill("#name", name)
        self.find("#entry button").click()

    def say(self, text):
        self.fill("#text", text)
        self.find("#send").click()

    def expect(self, selector, *wanted):
        """Waits until these are the texts of all such elements."""
        try:
            WebDriverWait(self.driver, BOUND).until(lambda _: self.texts(selector) == list(wanted))
        except TimeoutException:
            raise AssertionError(f"{selector}: {self.texts(selector)} instead of {wanted}")


def two_pages_talk():
    server = Server(str(programs / "chat"), "--port", "0", "--threads", "2")
    url = f"http://127.0.0.1:{server.port}/"
    driver = browser(profile, "900,640")
    try:
        ann, bob = Page(driver, url), Page(driver, url + "#tea")
        ann.expect("title", "Chat")
        ann.join("tea", "Ann")
        ann.expect("#state", "connected")
        ann.expect("#members li", "Ann")
        assert bob.find("#room").get_attribute("value") == "tea", "the room of the address is not in the form"
        bob.join("tea", "Bob")
        for each in ann, bob:
            each.expect("#room-name", "tea")
            each.expect("#members li", "Ann", "Bob")
        ann.say("Good morning, Bob! <b>Is the tea ready?</b>")
        bob.expect("#log .message p", "Good morning, Bob! <b>Is the tea ready?</b>")
        bob.say("Yes, come over \u2615")
        for each in ann, bob:
            each.expect("#log .message strong", "Ann", "Bob")
            each.expect("#log .message p", "Good morning, Bob! <b>Is the tea ready?</b>", "Yes, come over \u2615")
        ann.expect("#log .own p", "Good morning, Bob! <b>Is the tea ready?</b>")
        ann.expect("#log .notice", "You are in tea as Ann.", "Bob joined.")
        ann.find("#text").send_keys("On my")
        assert driver.save_screenshot(str(programs / "chat.png"))

        bob.find("#text")
        driver.close()
        ann.expect("#members li", "Ann")
        refused = Page(driver, url)
        driver.execute_script("document.getElementById('name').maxLength = 100")
        refused.join("tea", "x" * 33)
        refused.expect("#notice", 'the name "xxxxxxxxxxxxxxxx"... is not 1 to 32 characters, no blank at the ends')

        server.process.terminate()
        server.ends(0)
        ann.expect("#state", "not connected, trying again")
        again = Server(str(programs / "chat"), "--port", str(server.port))
        ann.expect("#state", "connected")  # by itself
        ann.say("Hello again")
        WebDriverWait(driver, BOUND).until(lambda _: ann.texts("#log .message p")[-1:] == ["Hello again"])
        again.process.terminate()
        again.ends(0)
    finally:
        driver.quit()


try:
    run_all([two_pages_talk])
finally:
    shutil.rmtree(profile, ignore_errors=True)
