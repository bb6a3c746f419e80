"""What the tests of pages do in a browser: `from page_in_browser import open_page`."""

from __future__ import annotations

import shutil
import time

import pytest

WINDOW = (1400, 900)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", f"--window-size={WINDOW[0]},{WINDOW[1]}",
    "--autoplay-policy=no-user-gesture-required",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A real browser that keeps its logs; skipped where there is none. `conftest.py` alone imports it: one for all
    pages.
    """
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver_path):
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(driver_path), options=options)
    driver.set_script_timeout(30)
    driver.get("about:blank")  # so that the browser's own first page loads nothing later
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    yield driver
    driver.quit()


def open_page(browser, path):
    """Opens a page and waits until its script is done; the logs are empty then, and the window is as at first."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get(path.as_uri())
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    until(lambda: browser.execute_script("return innerWidth") == WINDOW[0])  # a test before may have had a narrow one
    return browser


def complaints(browser) -> list[str]:
    """What went wrong on the page."""
    return [entry["message"] for entry in browser.get_log("browser")]


def until(condition, seconds=120.0):
    """Waits for a condition and gives its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def texts(browser, selector) -> list[str]:
    """The texts of the elements that a selector finds."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())", selector
    )


def click(browser, selector):
    """Clicks what a selector finds, where a person would: in the middle of it, on the screen."""
    element = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", element)
    element.click()


def choose(browser, selector, value):
    """Chooses a value of a list."""
    browser.execute_script(
        "const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('change'))",
        selector,
        str(value),
    )


def column_of(browser, name) -> int:
    """The position of a metric among the columns of the page."""
    names = browser.execute_script(
        "return JSON.parse(document.getElementById('data').textContent).columns.map((c) => c.name)"
    )
    return names.index(name)


def resize(browser, width, height=800, *, scheme="light"):
    """Gives the window a width and a height in pixels, and the colours that its reader prefers."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    # The script answers a new size in a later frame.
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def go(browser, address):
    """Goes to a view of a site and waits until it is drawn."""
    before = browser.execute_script("return document.documentElement.dataset.ready")
    browser.execute_script("location.hash = arguments[0]", address)
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready") not in (None, before))


def rows(browser, selector="main table") -> list[list[str]]:
    """The cells of the first table that a selector finds."""
    return browser.execute_script(
        "return [...document.querySelector(arguments[0]).tBodies[0].rows].map((r) => [...r.cells].map((c) => "
        "c.innerText.trim()))",
        selector,
    )
