"""Make the pictures of README.md and docs/figures.md from a run's report.

They are the report page, and the figure of quality against bitrate.

    python scripts/make_readme_pictures.py [--run build/classical-codecs] [--out docs/assets]

It evaluates classical codecs on the embedded speech, which needs no network and no GPU, opens the report of that run in
Chromium, and takes both pictures from it; nothing in them is drawn by this script. Debian's `chromium` and
`chromium-driver` are needed in addition to the packages of the tests. An existing run is continued or used.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageOps
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from codec_bench import evaluate

ROOT = Path(__file__).resolve().parent.parent
CODECS = "unprocessed,opus-6k,opus-12k,opus-24k,mp3-16k,mp3-32k,mp3-64k,amr-nb-4.75k,amr-nb-7.4k,amr-nb-12k,g722"
METRICS = "pesq_wb,stoi,sim[ge2e],dnsmos_ovrl,bitrate"
PLOTTED = "pesq_wb"  # the metric of the figure
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
# In CSS pixels. The page is taken at 1:1, so that its letters stay sharp in a small file; the figure at twice its size.
PAGE_SIZE = (1200, 900)
FIGURE_WIDTH = 900
MARGIN = 32  # of the figure, in pixels of the picture
LARGEST_BYTES = 200_000


def main() -> None:
    """Make the run if it does not exist, then the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--run", type=Path, default=ROOT / "build" / "classical-codecs", help="folder of the run; the page has its name"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "assets", help="folder of the pictures")
    options = parser.parse_args()
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        raise SystemExit("Chromium was not found. Install it, for example: apt install chromium chromium-driver")

    run = evaluate(codec=CODECS, data="embedded", metrics=METRICS, out=options.run)
    page = run.folder / "report.html"
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        browser = start(chromium, driver, profile)
        try:
            save(page_picture(browser, page), options.out / "report_page.png")
            save(figure_picture(browser, page), options.out / "rate_quality.png")
        finally:
            browser.quit()


def start(chromium: str, driver: str, profile: str) -> webdriver.Chrome:
    """A browser without a window that shows pages in their light colours."""
    flags = webdriver.ChromeOptions()
    flags.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        flags.add_argument(flag)
    browser = webdriver.Chrome(service=Service(driver), options=flags)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    )
    return browser


def open_page(browser: webdriver.Chrome, page: Path, width: int, height: int, scale: float) -> None:
    """Open a report in a window of that many CSS pixels, at a scale."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False},
    )
    browser.get(page.resolve().as_uri())
    time.sleep(1.0)  # the plots follow the size of the window one frame later


def page_picture(browser: webdriver.Chrome, page: Path) -> Image.Image:
    """The report from its title to the end of its summary."""
    open_page(browser, page, *PAGE_SIZE, scale=1)
    end = browser.find_element(By.ID, "plots").rect["y"]
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": PAGE_SIZE[0], "height": int(end), "deviceScaleFactor": 1, "mobile": False},
    )
    time.sleep(0.5)
    return Image.open(io.BytesIO(browser.get_screenshot_as_png()))


def figure_picture(browser: webdriver.Chrome, page: Path) -> Image.Image:
    """The large plot of the report for the figure's metric, with its legend."""
    open_page(browser, page, FIGURE_WIDTH, 1200, scale=2)
    chosen = [b for b in browser.find_elements(By.CSS_SELECTOR, "[data-plot]") if b.text.startswith(PLOTTED)]
    if len(chosen) != 1:
        raise SystemExit(f"The report offers {len(chosen)} plots of {PLOTTED}; expected one.")
    browser.execute_script("arguments[0].click()", chosen[0])
    figure = browser.find_element(By.CSS_SELECTOR, "figure.plot-large")
    return ImageOps.expand(Image.open(io.BytesIO(figure.screenshot_as_png)).convert("RGB"), MARGIN, "white")


def save(picture: Image.Image, path: Path) -> None:
    """Write a PNG of 128 colours, or refuse one that is too large for a README."""
    # This method keeps the colours of the small markers, which median cut would merge with the greys of the letters.
    palette = picture.convert("RGB").quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {picture.width} x {picture.height}, {size / 1000:.0f} kB")
    if size > LARGEST_BYTES:
        raise SystemExit(f"{path} has {size} bytes; expected {LARGEST_BYTES} at most. Take fewer codecs.")


if __name__ == "__main__":
    main()
