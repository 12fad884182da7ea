"""Chromium for the Python tests of the examples."""

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


def browser(profile, size):
    """A browser without a window of `size`, "WIDTH,HEIGHT", which keeps its files in the folder `profile`."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for each in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-dev-shm-usage", "--window-size=" + size, "--user-data-dir=" + profile):
        options.add_argument(each)
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
