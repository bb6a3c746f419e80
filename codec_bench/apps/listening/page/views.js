// The start, a trial and the end, one at a time; and the keys.
const root = byId("sheet");
const player = new TrialPlayer(() => refresh());
let order = [];
let view = null;
let since = 0;
let sessionSince = 0;

const hasOpen = data.trials.some((trial) => trial.open !== null);
const checks = data.trials.filter((trial) => trial.check).length;
const practice = data.trials.filter((trial) => trial.training).length;
/** What a trial is called by its place among all. */
const nameOf = (trial, at, all) => (trial.check ? `Check ${at + 1} of ${checks}` : trial.training ? `Practice ${at - checks + 1}${all ? ` of ${practice}` : ""}` : `Trial ${at - checks - practice + 1}${all ? ` of ${order.length - checks - practice}` : ""}`);

function refresh() {
  if (view) view.refresh();
}

/** Leaves what is on the screen: the sound stops, and the time that a trial took is noted. */
function leave() {
  player.clear();
  if (view?.trial) {
    answerOf(view.trial).ms += performance.now() - since;
    remember();
  }
  view = null;
}

/** Puts a view on the screen, and the focus on its heading or on `focus`. */
function show(children, focus) {
  root.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  scrollTo({ top: 0, behavior: "instant" });
  (focus || root.querySelector("h1")).focus({ preventScroll: true });
}
const headline = (text) => el("h1", { tabindex: "-1" }, text);
const button = (text, act, more) => el("button", { type: "button", class: "plain", onclick: act, ...more }, text);

function keysTable() {
  const rows = [...KEYS[data.form], ...(hasOpen && data.form !== "sliders" ? [["R", `play the ${data.open.toLowerCase()}`]] : []), ["Space", "play and pause"], ["L", "repeat what plays"], ["N or Enter, P", "next trial, previous trial"]];
  return el("details", { class: "keys", open: innerWidth > 640 }, el("summary", null, "Keys"), el("dl", null, rows.map(([key, what]) => el("div", null, el("dt", null, el("kbd", null, key)), el("dd", null, what)))));
}

function showStart(problem) {
  leave();
  const held = remembered();
  const name = el("input", { id: "rater", type: "text", autocomplete: "name", required: true, maxlength: 100 });
  name.value = state.rater;
  const file = el("input", { id: "file", type: "file", accept: ".json,application/json" });
  file.addEventListener("change", async () => {
    try {
      takeUp(await file.files[0].text());
      begin(state.rater);
    } catch (error) {
      showStart(error.message);
    }
  });
  const form = el(
    "form",
    {
      class: "start",
      onsubmit: (event) => {
        event.preventDefault();
        const rater = name.value.trim().replace(/\s+/g, " ");
        if (!rater) return;
        // Answers belong to a name: a name that was here goes on, and another one begins anew.
        if (rater !== state.rater) state = held.get(rater) ?? newState(rater);
        begin(rater);
      },
    },
    el("label", { for: "rater" }, "Your name"),
    el("div", { class: "together" }, name, el("button", { class: "plain primary", id: "begin" }, "Begin")),
  );
  const resume = [...held.values()].map((one) =>
    el("p", { class: "resume" }, `${one.rater} has answered ${data.trials.filter((trial) => trialAnswered(one, trial)).length} of ${plural(data.trials.length, "trial")} in this browser. `,
      button(`Continue as ${one.rater}`, () => { state = one; begin(one.rater); }, { class: "plain continue" })),
  );
  const counted = data.trials.length - practice - checks;
  const before = [checks && plural(checks, "question"), practice && `${plural(practice, "trial")} for practice`].filter(Boolean).join(" and ");
  const after = [data.session && counted > data.session && plural(data.session, "trial"), data.minutes && plural(data.minutes, "minute")].filter(Boolean).join(" or ");
  const rests = after && ` After every ${after} you get a break.`;
  show(
    [
      headline(data.title),
      problem && el("p", { class: "banner", role: "alert" }, problem),
      data.instructions.map((text) => el("p", { class: "lead" }, text)),
      el("p", { class: "lead" }, `There ${counted === 1 ? "is" : "are"} ${plural(counted, "trial")}${before ? ` after ${before}` : ""}.${rests} Your answers stay in this browser until you save them to a file at the end, which you then send back. You can also save in between and go on later, here or elsewhere.`),
      resume,
      form,
      el("p", { class: "load" }, el("label", { for: "file" }, "Or go on from a file that you saved: "), file),
      keysTable(),
      el("p", { class: "lead" }, el("small", null, `Sound in this file: ${data.sound}.`)),
    ],
    problem ? null : name,
  );
}

const trialAnswered = (held, trial) => requiredParts(trial).every((id) => Object.hasOwn(held.answers?.[trial.id]?.values ?? {}, id));

function begin(rater) {
  order = arranged(personOf(state));
  sessionSince = performance.now();
  remember();
  const open = order.findIndex((trial) => !isDone(trial));
  if (open < 0) showEnd();
  else showTrial(open);
}

function transport(trial) {
  const play = button("Play", () => (player.playing ? player.pause() : player.play(player.active ?? view.first)), { class: "plain play", id: "play" });
  const position = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "Position", class: "position", disabled: true });
  const time = el("span", { class: "time" });
  const loop = el("input", { type: "checkbox", id: "loop" });
  loop.addEventListener("change", () => (player.loop = loop.checked));
  loop.checked = player.loop;
  position.addEventListener("input", () => player.seek(Number(position.value)));
  const open = trial.open !== null && el("div", { class: "sounds open" }, playButton(OPEN, data.open, "R"));
  const bar = el("div", { class: "transport" }, play, position, time, el("label", { class: "loop" }, loop, " repeat"));
  return { shows: [bar, open], play, position, time, loop };
}

function showTrial(at) {
  leave();
  state.at = at;
  const trial = order[at];
  const made = trial.check ? (trial.choices.length ? checkTrial : digitsTrial)(trial) : FORMS[data.form](trial);
  const tracks = [...(trial.open === null ? [] : [[OPEN, trial.open]]), ...trial.stimuli.filter((one) => one.clip !== null).map((one) => [one.id, one.clip])];
  const bar = tracks.length ? transport(trial) : null;
  const status = el("p", { class: "status-line", role: "status" });
  const progress = el("progress", { max: order.length, "aria-label": "Answered trials" });
  const next = button("Next", () => go(1), { id: "next", class: "plain primary" });
  view = {
    ...made,
    trial,
    bar,
    first: tracks.some(([key]) => key === made.first) ? made.first : tracks[0]?.[0],
    refresh() {
      made.refresh();
      for (const one of root.querySelectorAll("[data-plays]")) {
        one.setAttribute("aria-pressed", String(player.active === one.dataset.plays));
        one.disabled = !player.tracks.has(one.dataset.plays);
      }
      if (bar) bar.play.textContent = player.playing ? "Pause" : "Play";
      const broken = player.broken.size ? `${plural(player.broken.size, "sound")} of this trial cannot be played by this browser.` : "";
      status.textContent = broken || made.waits();
      progress.value = order.filter(isDone).length;
      next.textContent = at + 1 === order.length ? "To the end" : "Next";
    },
  };
  show([
    el("header", { class: "progress" }, headline(nameOf(trial, at, true)), progress),
    trial.training && el("p", { class: "lead" }, "This trial is for practice and does not count."),
    (data.form === "sliders" || data.scales.length > 1) && !trial.check && el("p", { class: "question" }, data.question),
    trial.texts.map(([heading, text]) => reading(heading, text)),
    bar && bar.shows,
    made.body,
    status,
    el("nav", { class: "moves", "aria-label": "Trials" }, button("Previous", () => go(-1), { id: "previous", disabled: at === 0 }), next, button("Save and go on later", () => (status.textContent = `Saved as ${save()}.`), { id: "save-now" })),
    !trial.check && keysTable(),
  ]);
  since = performance.now();
  delete root.dataset.trial;
  refresh();
  player.load(tracks, () => view?.trial === trial).then((isHere) => {
    if (!isHere) return;
    if (bar && player.tracks.size) {
      bar.position.max = String(player.duration);
      bar.position.disabled = false;
    }
    root.dataset.trial = trial.id;
    refresh();
  });
}

function go(by) {
  const at = state.at + by;
  if (at < 0) return;
  const done = at - checks - practice;
  if (at >= order.length) showEnd();
  else if (by > 0 && ((data.session && done > 0 && done % data.session === 0) || (data.minutes && performance.now() - sessionSince >= 60_000 * data.minutes))) showRest(at);
  else showTrial(at);
}

/** The end of a session of bounded length. */
function showRest(at) {
  leave();
  const status = el("p", { class: "lead", role: "status", id: "saved" });
  const more = button("Go on", () => ((sessionSince = performance.now()), showTrial(at)), { id: "go-on", class: "plain primary" });
  show([
    headline("Time for a rest"),
    el("p", { class: "lead" }, `${plural(order.length - at, "trial")} are left. Rest for at least as long as this part took. You can also save now and go on later.`),
    el("p", { class: "together" }, more, button("Save and go on later", () => (status.textContent = `Saved as ${save()}.`), { id: "save-now" })),
    status,
  ], more);
}

function showEnd() {
  leave();
  state.at = order.length;
  const open = order.map((trial, at) => [trial, at]).filter(([trial]) => !isDone(trial));
  const status = el("p", { class: "lead", role: "status", id: "saved" });
  const save_ = button("Save the answers to a file", () => {
    status.textContent = `Saved as ${save()}. Send this file to whoever gave you this page.`;
  }, { id: "save", class: "plain primary" });
  show(
    [
      headline(open.length ? "Not everything is answered" : "All trials are answered"),
      open.length
        ? el("p", { class: "lead" }, `${plural(open.length, "trial")} ${open.length === 1 ? "has" : "have"} no complete answer. You can go back to ${open.length === 1 ? "it" : "them"}, or save what there is.`)
        : el("p", { class: "lead" }, "Thank you. Save your answers to a file now."),
      open.length > 0 && el("p", { class: "together" }, open.map(([trial, at]) => button(nameOf(trial, at), () => showTrial(at)))),
      el("p", { class: "together" }, save_, button("Back to the trials", () => showTrial(order.length - 1), { id: "back" }), button("To the start", () => showStart())),
      status,
    ],
    save_,
  );
}

const COMMON = {
  " ": () => player.tracks.size && (player.playing ? player.pause() : player.play(player.active ?? view.first)),
  r: () => listenTo(OPEN),
  l: () => view.bar && view.bar.loop.click(),
  n: () => go(1),
  Enter: () => go(1),
  p: () => go(-1),
};

addEventListener("keydown", (event) => {
  if (!view?.trial || event.ctrlKey || event.metaKey || event.altKey) return;
  const { target } = event;
  if (target.closest("textarea, input[type=text]")) {
    if (event.key === "Escape") root.querySelector("h1").focus();
    else if (event.key === "Enter" && !target.closest("textarea")) go(1);
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  // Buttons, links and checkboxes take the space bar and Enter themselves, and radio buttons the space bar.
  const isControl = target.closest("button, summary, a, input") && target.type !== "range";
  if (isControl && (key === " " || (key === "Enter" && target.type !== "radio"))) return;
  if (view.key(key)) event.preventDefault();
  else if (Object.hasOwn(COMMON, key)) {
    COMMON[key]();
    event.preventDefault();
  }
});

function tick() {
  if (view?.bar && player.tracks.size) {
    player.tick();
    if (document.activeElement !== view.bar.position || player.playing) view.bar.position.value = String(player.position);
    view.bar.time.textContent = `${clock(player.position)} of ${clock(player.duration)}`;
  }
  requestAnimationFrame(tick);
}

addEventListener("pagehide", () => view?.trial && leave());
showStart();
requestAnimationFrame(tick);
document.documentElement.dataset.ready = "true";
