// Frames in which tables scroll: where more of a table is, its side says so. `parts.html.j2` holds the frame of the template.
function framed(label, table, kind) {
  const frame = el("div", { class: kind ? `frame ${kind}` : "frame" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table));
  watchFrame(frame);
  return frame;
}

function watchFrame(frame) {
  const scroll = frame.querySelector(".scroll");
  const show = () => {
    const right = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
    const below = scroll.scrollHeight - scroll.clientHeight - scroll.scrollTop;
    frame.classList.toggle("more-left", scroll.scrollLeft > 1);
    frame.classList.toggle("more-right", right > 1);
    frame.classList.toggle("more-below", below > 1);
    // A frame in which all is seen is no stop of the keyboard.
    const scrolls = scroll.scrollWidth > scroll.clientWidth + 1 || scroll.scrollHeight > scroll.clientHeight + 1;
    scroll.tabIndex = scrolls || scroll === document.activeElement ? 0 : -1;
  };
  scroll.addEventListener("scroll", show, { passive: true });
  // The focused element must not be under the fixed column or the fixed head.
  scroll.addEventListener("focusin", () => {
    const [corner] = scroll.querySelector("tr").cells;
    scroll.style.scrollPadding = `${corner.parentElement.offsetHeight}px 0 0 ${corner.offsetWidth}px`;
  });
  const sizes = new ResizeObserver(show);
  sizes.observe(scroll);
  sizes.observe(scroll.firstElementChild);
}

function startFrames() {
  for (const frame of document.querySelectorAll(".frame")) watchFrame(frame);
}
