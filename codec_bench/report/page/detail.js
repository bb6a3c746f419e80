// One sample: its sound and spectrograms side by side, its transcripts word by word, its scores.
const detail = byId("detail");
const player = new Player(() => current && showPlaying());
const ALIGNMENT_LIMIT = 4e6;
// Scripts that put no spaces between words are aligned by character.
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
let current = null;
let frame = 0;

const detailsOf = new Map();
for (const [system, sample, column, content] of data.details) {
  const key = `${system} ${sample}`;
  if (!detailsOf.has(key)) detailsOf.set(key, new Map());
  detailsOf.get(key).set(column, content);
}

const PLAY = "M2,1L11,6L2,11Z";
const PAUSE = "M2,1H5V11H2ZM7,1H10V11H7Z";
const icon = (path) => shape("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, shape("path", { d: path }));
const nameOf = (track) => (track < 0 ? (isAsked(current.n) ? "question" : data.prompted ? "prompt" : "reference") : data.systems[track].label);

function openSample(n, s) {
  player.clear();
  const [, text, speaker, language, , itsRate] = data.samples[n];
  const [duration, rate] = [lengthOf(s, n), data.prompted ? null : itsRate]; // a prompt's rate is not the sample's
  const systems = data.systems.map((_, other) => other).filter((other) => data.finished[other][n]);
  // The system of the chosen row is next to the reference.
  const order = [-1, s, ...systems.filter((other) => other !== s)];
  const clips = order.map((track) => ({ track, clip: clipOf.get(`${n} ${track}`) }));
  const playable = clips.filter(({ clip }) => clip !== undefined);
  // If there is no sound, only the tracks that could have some are listed.
  const tracks = clips.filter(({ track, clip }) => clip !== undefined || (track < 0 ? !isAsked(n) || duration !== null : data.systems[track].speaks));
  const compares = playable.length > 1 && playable[0].track < 0;
  current = { n, s, tracks, lastEstimate: s, loaded: 0, pictures: new Map(), mode: "levels", last: null };

  const facts = [speaker && `speaker ${speaker}`, language, duration !== null && `${isAsked(n) ? "question of " : ""}${duration.toFixed(2)} s`, rate && `${rate / 1000} kHz`].filter(Boolean).join(", ");
  const place = view.rows.findIndex(([a, b]) => a === s && b === n);
  const step = (by) => {
    const next = view.rows[place + by];
    if (next) openSample(next[1], next[0]);
  };
  // A long text is no part of the head, which stays in sight and would leave no room for the rest.
  const body = el("div", { class: "detail-body" }, text && el("p", { class: "said-whole" }, text));
  detail.replaceChildren(
    el(
      "div",
      { class: "detail-head" },
      el(
        "div",
        { class: "detail-title" },
        el("div", null, el("h2", { id: "detail-title", tabindex: -1, autofocus: true }, words(labelOf(data.samples[n]))), el("small", null, facts)),
        el(
          "div",
          null,
          el("button", { type: "button", class: "plain", id: "detail-previous", disabled: place <= 0, onclick: () => step(-1), "aria-label": "Previous: the row above in the table" }, "←"),
          el("button", { type: "button", class: "plain", id: "detail-next", disabled: place < 0 || place >= view.rows.length - 1, onclick: () => step(1), "aria-label": "Next: the row below in the table" }, "→"),
          el("button", { type: "button", class: "plain", id: "detail-close", onclick: () => detail.close() }, "Close"),
        ),
      ),
      playable.length > 0 && transport(compares),
    ),
    body,
  );
  if (playable.length) body.append(trackOptions(compares && !isAsked(n) && !data.prompted), el("div", { class: "tracks" }, tracks.map((entry) => trackRow(n, entry))));
  else if (tracks.length) body.append(elsewhere(n, order));
  body.append(...exchange(n, order), ...transcripts(n, order), scoreTable(n, order), ...remarks(n, order));
  if (!detail.open) detail.showModal();
  detail.scrollTop = 0;
  load(n, playable, itsRate);
}

function transport(compares) {
  return el(
    "div",
    { class: "transport" },
    el("button", { type: "button", class: "plain play", id: "play", disabled: true, onclick: () => (player.playing ? player.pause() : player.play()) }, "Play"),
    compares && el(
      "div",
      { class: "ab", role: "group", "aria-label": "A/B; key X changes, the position stays", title: "Key X changes; the position stays." },
      el("button", { type: "button", class: "plain", id: "hear-a", disabled: true, "aria-pressed": "false", onclick: () => player.hear(-1) }, el("b", null, "A"), nameOf(-1)),
      el("button", { type: "button", class: "plain", id: "hear-b", disabled: true, "aria-pressed": "false", onclick: () => player.hear(estimateToCompare()) }, el("b", null, "B"), el("span", { id: "name-b" })),
    ),
    el("input", { type: "range", id: "position", min: 0, max: 1, step: 0.001, value: 0, disabled: true, "aria-label": "Position in seconds", oninput: (event) => player.seek(Number(event.target.value)) }),
    el("span", { class: "time", id: "time" }, "decoding …"),
  );
}

// A difference is shown only between sounds that should be alike, not for a question or a prompt.
function trackOptions(differs) {
  const modes = differs ? [["levels", "Spectrogram"], ["difference", "Difference from the reference"]] : [];
  const scale = el("canvas", { width: 256, height: 1 });
  return el(
    "div",
    { class: "track-options" },
    el(
      "div",
      null,
      modes.map(([mode, label]) =>
        el("button", { type: "button", class: "plain", "data-mode": mode, "aria-pressed": String(mode === "levels"), onclick: () => setMode(mode) }, label),
      ),
      el("label", null, el("input", { type: "checkbox", id: "loop", onchange: (event) => (player.loop = event.target.checked) }), " loop"),
    ),
    el("span", { class: "scale" }, el("span", { id: "scale-low" }), scale, el("span", { id: "scale-high" })),
  );
}

function trackRow(n, { track, clip }) {
  const name = nameOf(track);
  const scores = track < 0 ? [] : [view.metric, ...bitrateColumns].filter((c, at, all) => c >= 0 && all.indexOf(c) === at && data.values[track][c][n] !== null);
  const label = el(
    "div",
    { class: "track-name" },
    el("button", { type: "button", class: "listen", disabled: true, "data-track": track, "aria-label": `Play ${name}`, onclick: () => toggle(track) }, icon(PLAY)),
    el("strong", null, words(name)),
    el("small", null, scores.map((c) => el("span", null, `${data.columns[c].base} ${single(data.values[track][c][n], data.columns[c])} ${data.columns[c].unit}`))),
  );
  if (clip !== undefined) {
    const picture = el("div", { class: "picture", "data-track": track, onclick: (event) => seekAt(event, track) }, el("canvas", { width: 1, height: 1, role: "img", "aria-label": `Spectrogram of ${name}` }), el("div", { class: "head", hidden: true }));
    return el("div", { class: "track", "data-track": track }, label, picture);
  }
  const failure = track >= 0 && why(track, n, -1);
  const content = failure ? `${failure.status}: ${failure.reason}` : "The run saved no sound of this system.";
  return el("div", { class: "track", "data-track": track }, label, el("div", { class: "silent" }, content));
}

// Says where the sound of a sample is, if this file holds none of it.
function elsewhere(n, order) {
  const saved = order.filter((track) => savedOf.has(`${n} ${track}`));
  if (!saved.length) return el("div", { class: "silent alone" }, "The run saved no sound of this sample.");
  const links = saved.map((track) => [savedOf.get(`${n} ${track}`), nameOf(track)]).filter(([link]) => link);
  return el(
    "div",
    { class: "silent alone" },
    el("div", null, "The sound of this sample is in the run folder, not in this file", links.length ? ": " : ".", links.map(([link, name], at) => [at ? ", " : "", el("a", { href: link }, name)])),
  );
}

const trackElement = (track) => detail.querySelector(`.track[data-track="${track}"]`);

async function load(n, playable, rate) {
  const mine = current;
  const results = await Promise.all(
    playable.map(async ({ track, clip }) => {
      try {
        return { track, buffer: await decode(clip, rate) };
      } catch (error) {
        return { track, error };
      }
    }),
  );
  if (current !== mine) return;
  for (const { track, buffer, error } of results) {
    const row = trackElement(track);
    if (error) {
      row.querySelector(".picture").replaceWith(el("div", { class: "silent" }, "This browser cannot decode the sound."));
      continue;
    }
    player.tracks.set(track, buffer);
    row.dataset.duration = buffer.duration;
    row.querySelector(".listen").disabled = false;
  }
  if (!player.tracks.size) {
    if (byId("time")) byId("time").textContent = "no sound";
    return;
  }
  player.active = player.tracks.has(current.s) ? current.s : [...player.tracks.keys()][0];
  byId("play").disabled = false;
  byId("position").disabled = false;
  byId("position").max = player.duration;
  for (const button of detail.querySelectorAll(".ab button")) button.disabled = !(player.tracks.has(-1) && player.tracks.size > 1);
  showPlaying();
  await drawPictures(mine);
}

async function drawPictures(mine) {
  const topHz = Math.max(...[...player.tracks.values()].map((buffer) => buffer.sampleRate)) / 2;
  const ratio = Math.min(2, devicePixelRatio || 1);
  let peak = 0;
  for (const [track, buffer] of player.tracks) {
    const box = trackElement(track).querySelector(".picture");
    const columns = Math.max(64, Math.min(1400, Math.round(box.clientWidth * ratio)));
    const rows = Math.round(box.clientHeight * ratio);
    const spectrum = powers(mono(buffer), buffer.sampleRate, columns);
    // The reference comes first, so everything is measured against its loudest point.
    if (!peak) peak = peakPower(spectrum) || 1;
    mine.pictures.set(track, { columns, rows, db: levels(spectrum, rows, topHz, peak) });
    const marks = [topHz, topHz / 2].map((hertz, n) => {
      const mark = el("span", { class: "hertz" }, `${Number((hertz / 1000).toPrecision(3))} kHz`);
      mark.style.top = n ? "calc(50% - 0.35rem)" : "0.25rem";
      return mark;
    });
    box.append(...marks);
    paintTrack(mine, track);
    await new Promise((done) => setTimeout(done));
    if (current !== mine) return;
  }
  showScale();
  detail.dataset.ready = String(mine.n);
}

function paintTrack(mine, track) {
  const { columns, rows, db } = mine.pictures.get(track);
  const canvas = trackElement(track).querySelector("canvas");
  const reference = mine.pictures.get(-1);
  if (mine.mode === "difference" && track >= 0 && reference) paintDifference(canvas, columns, rows, db, reference.db);
  else paintLevels(canvas, columns, rows, db);
}

function setMode(mode) {
  current.mode = mode;
  for (const button of detail.querySelectorAll("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  for (const track of current.pictures.keys()) paintTrack(current, track);
  showScale();
}

function showScale() {
  const difference = current.mode === "difference";
  paint(detail.querySelector(".scale canvas"), 256, 1, difference ? DIFFERENCE_COLOURS : LEVEL_COLOURS, (n) => n / 255);
  byId("scale-low").textContent = difference ? `lost −${DIFFERENCE_DB} dB` : `${number(FLOOR_DB, 0)} dB`;
  byId("scale-high").textContent = difference ? `+${DIFFERENCE_DB} dB added` : player.tracks.has(-1) ? `the ${nameOf(-1)}’s peak` : "the first track's peak";
}

function toggle(track) {
  if (player.playing && player.active === track) player.pause();
  else player.play(track);
}

// A is the reference, B the estimate that played last.
function flip() {
  if (!byId("hear-a") || byId("hear-a").disabled) return;
  player.hear(player.active < 0 ? estimateToCompare() : -1);
}
const estimateToCompare = () =>
  player.tracks.has(current.lastEstimate) ? current.lastEstimate : [...player.tracks.keys()].find((track) => track >= 0);

function seekAt(event, track) {
  const box = event.currentTarget.getBoundingClientRect();
  player.hear(track);
  player.seek(((event.clientX - box.left) / box.width) * player.tracks.get(track).duration);
}

function showPlaying() {
  if (!byId("play")) return;
  if (player.active >= 0) current.lastEstimate = player.active;
  byId("play").textContent = player.playing ? "Pause" : "Play";
  if (byId("hear-a")) {
    const estimate = estimateToCompare();
    byId("name-b").textContent = estimate === undefined ? "–" : nameOf(estimate);
    byId("hear-a").setAttribute("aria-pressed", String(player.active === -1));
    byId("hear-b").setAttribute("aria-pressed", String(player.active !== null && player.active >= 0));
  }
  for (const row of detail.querySelectorAll(".track")) {
    const track = Number(row.dataset.track);
    const active = player.active === track && player.tracks.has(track);
    row.classList.toggle("active", active);
    const button = row.querySelector(".listen");
    const sounding = active && player.playing !== null;
    button.replaceChildren(icon(sounding ? PAUSE : PLAY));
    button.setAttribute("aria-label", `${sounding ? "Pause" : "Play"} ${nameOf(track)}`);
  }
  showPosition();
  followPlaying();
}

// Requests one frame at a time, however often the track changes while it plays.
function followPlaying() {
  if (player.playing) frame ||= requestAnimationFrame(follow);
}

function follow() {
  frame = 0;
  player.tick();
  showPosition();
  followPlaying();
}

function showPosition() {
  const position = player.position;
  if (!byId("time")) return;
  byId("time").textContent = `${clock(position)} / ${clock(player.duration)}`;
  byId("position").value = position;
  for (const box of detail.querySelectorAll(".picture")) {
    const buffer = player.tracks.get(Number(box.dataset.track));
    const head = box.querySelector(".head");
    if (!buffer || !head) continue;
    head.hidden = position === 0 && !player.playing;
    head.style.left = `${(100 * Math.min(position, buffer.duration)) / buffer.duration}%`;
  }
}

/** Pairs of [reference word or null, estimate's word or null] with the fewest edits. */
function align(reference, hypothesis) {
  const [rows, columns] = [reference.length + 1, hypothesis.length + 1];
  const cost = new Uint32Array(rows * columns);
  for (let i = 0; i < rows; i += 1) cost[i * columns] = i;
  for (let j = 0; j < columns; j += 1) cost[j] = j;
  for (let i = 1; i < rows; i += 1) {
    for (let j = 1; j < columns; j += 1) {
      const same = reference[i - 1] === hypothesis[j - 1] ? 0 : 1;
      cost[i * columns + j] = Math.min(cost[(i - 1) * columns + j - 1] + same, cost[(i - 1) * columns + j] + 1, cost[i * columns + j - 1] + 1);
    }
  }
  const pairs = [];
  let [i, j] = [rows - 1, columns - 1];
  while (i || j) {
    const here = cost[i * columns + j];
    const same = i && j && reference[i - 1] === hypothesis[j - 1];
    if (i && j && here === cost[(i - 1) * columns + j - 1] + (same ? 0 : 1)) pairs.push([reference[--i], hypothesis[--j]]);
    else if (i && here === cost[(i - 1) * columns + j] + 1) pairs.push([reference[--i], null]);
    else pairs.push([null, hypothesis[--j]]);
  }
  return pairs.reverse();
}

const pair = (kind, reference, hypothesis) =>
  el("span", { class: `pair ${kind}` }, el("del", null, reference ?? "\u00a0"), el("ins", null, hypothesis ?? "\u00a0"));

function alignedWords(content, byCharacter) {
  const units = (text) => (byCharacter ? [...text.replace(/\s+/g, "")] : text.split(/\s+/).filter(Boolean));
  const [reference, hypothesis] = [units(content.reference), units(content.hypothesis)];
  if (reference.length * hypothesis.length > ALIGNMENT_LIMIT) return el("p", null, content.hypothesis);
  const pairs = align(reference, hypothesis);
  const kind = ([a, b]) => (a === null ? "inserted" : b === null ? "deleted" : a === b ? "same" : "substituted");
  return el("div", { class: byCharacter ? "words tight" : "words" }, pairs.map((p) => pair(kind(p), ...p)), !pairs.length && el("small", null, "the text is empty, and nothing was recognised"));
}

function transcripts(n, order) {
  const parts = [];
  data.columns.forEach((column, c) => {
    const found = order
      .map((s) => [s, detailsOf.get(`${s} ${n}`)?.get(c)])
      .filter(([, content]) => content && typeof content.reference === "string" && typeof content.hypothesis === "string");
    if (!found.length) return;
    // Two metrics of one recogniser share their transcripts; the first of them shows them.
    const key = JSON.stringify(found.map(([s, content]) => [s, content.reference, content.hypothesis]));
    if (parts.some((part) => part.key === key)) return;
    const { unit, reference } = found[0][1];
    const byCharacter = unit ? unit === "char" : column.base === "cer" || UNSPACED.test(reference);
    const section = el(
      "div",
      { class: "transcripts" },
      el(
        "h3",
        null,
        `Transcripts, ${title(column)}`,
        el("span", { class: "key" }, el("span", { class: "pair substituted" }, el("ins", null, "substituted")), el("span", { class: "pair deleted" }, el("del", null, "deleted")), el("span", { class: "pair inserted" }, el("ins", null, "inserted"))),
      ),
      found.map(([s, content]) =>
        el("div", { class: "alignment" }, el("div", null, nameOf(s), el("small", null, single(data.values[s][c][n], column))), alignedWords(content, byCharacter), typeof content.transcript === "string" && el("small", { class: "written" }, `as written: ${content.transcript}`)),
      ),
    );
    parts.push({ key, section });
  });
  return parts.map((part) => part.section);
}

function scoreTable(n, order) {
  const systems = order.filter((s) => s >= 0);
  const sets = new Set(systems.map((s) => data.systems[s].data));
  const columns = data.columns.map((column, c) => [column, c]).filter(([column]) => sets.has(column.data));
  const heads = columns.map(([column]) =>
    el("th", { scope: "col" }, el("span", { class: "metric" }, words(column.base, 4), el("span", { class: "arrow", "aria-hidden": "true" }, column.arrow)), (column.variant || column.unit) && el("span", { class: "variant" }, [column.variant, column.unit].filter(Boolean).join(" "))),
  );
  const rows = systems.map((s) =>
    el(
      "tr",
      null,
      el("th", { scope: "row", class: "name" }, el("span", { class: "mark" }, marker(data.systems[s].family)), shortened(data.systems[s].label)),
      columns.map(([column, c]) => {
        const value = data.values[s][c][n];
        const because = value === null && why(s, n, c);
        return el("td", { class: value === null ? "none" : null }, because ? el("span", { class: `status ${because.status}` }, because.status.replace("_", " ")) : single(value, column));
      }),
    ),
  );
  const table = el("table", { class: "grid" }, el("thead", null, el("tr", null, el("th", { scope: "col", class: "name" }, "System"), heads)), el("tbody", null, rows));
  return el("div", null, el("h3", null, "Scores of this sample"), framed("Scores of this sample", table));
}

function remarks(n, order) {
  const lines = [];
  for (const s of order) {
    for (const [c, { status, reason }] of missing.get(`${s} ${n}`) || []) {
      lines.push(el("li", null, el("span", { class: `status ${status}` }, status.replace("_", " ")), ` ${nameOf(s)}, ${c < 0 ? "whole item" : title(data.columns[c])}: ${reason}`));
    }
    for (const [c, { flag }] of detailsOf.get(`${s} ${n}`) || []) {
      if (flag) lines.push(el("li", null, el("span", { class: "status flagged" }, "flagged"), ` ${nameOf(s)}, ${title(data.columns[c])}: ${flag}`));
    }
    for (const note of noted.get(`${s} ${n}`) || []) lines.push(el("li", null, `${nameOf(s)}: ${note}`));
  }
  return lines.length ? [el("h3", null, "Reasons and notes"), el("ul", { class: "remarks" }, lines)] : [];
}

function startDetail() {
  detail.addEventListener("close", () => {
    if (detail.open) return; // another sample was opened before the browser reported the closing
    player.clear();
    document.body.append(tip);
    const row = current && byId("sample-table").querySelector(`[data-row="${current.s} ${current.n}"] .open`);
    current = null;
    delete detail.dataset.ready;
    detail.replaceChildren();
    if (row) row.focus();
  });
  detail.addEventListener("click", (event) => {
    if (event.target === detail) detail.close();
  });
  detail.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const key = event.key.toLowerCase();
    const onControl = event.target.closest("button, a, input[type=checkbox]");
    if (key === " " && !onControl && byId("play") && !byId("play").disabled) {
      event.preventDefault();
      byId("play").click();
    } else if (key === "x") flip();
  });
}
