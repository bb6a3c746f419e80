// The address of a view is in the part of the link after `#`, with its state, so that a link shows what its sender saw.
const views = new Map();

/** Names the function that draws the views whose address begins with a word. */
const view = (word, draw) => views.set(word, draw);

function address(...parts) {
  const [last, ...others] = parts.reverse();
  const state = last && typeof last === "object" ? last : null;
  const path = (state ? others : [last, ...others]).reverse().map(encodeURIComponent).join("/");
  const query = state ? new URLSearchParams(Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "")).toString() : "";
  return `#/${path}${query ? `?${query}` : ""}`;
}

function here() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, state: new URLSearchParams(query ?? "") };
}

/** Writes the state of the view into the address, without drawing it again. */
function keepState(changes) {
  const { parts, state } = here();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") state.delete(name);
    else state.set(name, value);
  }
  history.replaceState(null, "", address(...parts, Object.fromEntries(state)));
}

let drawn = 0;
async function drawView() {
  const main = byId("main");
  if (location.hash && !location.hash.startsWith("#/")) {
    // A link to a place of the page, such as that of the keyboard: the view stays.
    history.replaceState(null, "", lastAddress);
    main.focus();
    return;
  }
  const first = drawn === 0;
  const turn = (drawn += 1);
  lastAddress = location.hash || "#/";
  delete document.documentElement.dataset.ready;
  const { parts, state } = here();
  const box = el("div", { class: "view" });
  let heading = "There is no such page";
  try {
    const draw = views.get(parts[0]);
    if (draw) heading = await draw(box, parts.slice(1), state);
    else box.append(el("h1", null, heading), el("p", { class: "lead" }, "This address is no page of this site."));
  } catch (error) {
    heading = "This page cannot be shown";
    box.replaceChildren(el("h1", null, heading), el("p", { class: "banner" }, error.message));
  }
  if (turn !== drawn) return; // another view was opened meanwhile
  hideTip();
  if (byId("detail").open) byId("detail").close();
  main.replaceChildren(box);
  document.title = `${heading} – ${index.title}`;
  for (const link of byId("pages").querySelectorAll("a")) {
    const own = link.getAttribute("href").slice(2);
    if (own === parts[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!first) {
    scrollTo({ top: 0, behavior: "instant" });
    main.focus({ preventScroll: true });
  }
  document.documentElement.dataset.ready = String(turn);
}
let lastAddress = "#/";
