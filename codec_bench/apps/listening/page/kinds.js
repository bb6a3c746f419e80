// The trial of each kind: gives its elements, what `refresh` shows anew, which keys it takes, and what it waits for; before them
// what they are made of: buttons that play, texts, and choices.
/** A text with its heading; line breaks stay. */
const reading = (heading, text) => el("div", { class: "reading" }, el("h3", null, heading), el("p", null, text));

/** A button that plays one sound, or pauses it. */
function playButton(id, name, key) {
  const button = el("button", { type: "button", class: "plain sound", "data-plays": id, onclick: () => listenTo(id) }, name);
  if (key) button.append(" ", el("kbd", null, key));
  return button;
}

/** Plays a sound from where the others are; if it is playing, pauses it. */
async function listenTo(id) {
  if (player.playing && player.heard === id) player.pause();
  else await player.play(id);
}

/** Whether a stimulus may be rated: it was played, it has no sound, or it was rated before. */
function mayRate(trial, stimuli) {
  return isDone(trial) || stimuli.every((one) => one.clip === null || player.played.has(one.id));
}

/** One choice among several, as radio buttons with their keys. `chosen` is the value so far. */
function choices(legend, entries, chosen, choose) {
  const group = el("fieldset", { class: "choices" }, el("legend", null, legend));
  for (const { value, label, key } of entries) {
    const input = el("input", { type: "radio", name: "choice", value: String(value), onchange: () => choose(value) });
    input.checked = value === chosen;
    group.append(el("label", null, input, el("span", null, label), key && el("kbd", null, key)));
  }
  return group;
}

/** Chooses by key: gives whether the key belongs to an entry. */
function chooseByKey(group, entries, key) {
  const place = entries.findIndex((entry) => entry.key === key);
  if (place < 0) return false;
  if (!group.disabled) {
    const input = group.querySelectorAll("input")[place];
    input.checked = true;
    input.focus();
    input.dispatchEvent(new Event("change"));
  }
  return true;
}

function setValue(trial, stimulus, value) {
  answerOf(trial).values[stimulus] = value;
  remember();
  refresh();
}

const INTERVALS = ["Bad", "Poor", "Fair", "Good", "Excellent"];
const MOVES = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

function mushraTrial(trial) {
  const stimuli = stimuliOf(trial, state.rater);
  const sliders = new Map();
  const rows = stimuli.map((stimulus, n) => {
    const name = `Version ${n + 1}`;
    const slider = el("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": name, "data-stimulus": stimulus.id });
    const shows = el("output", { class: "score" });
    slider.value = String(answerOf(trial).values[stimulus.id] ?? 0);
    const take = () => !slider.disabled && setValue(trial, stimulus.id, Number(slider.value));
    slider.addEventListener("input", take);
    // Where a slider already is, moving it there changes nothing, and is an answer all the same.
    slider.addEventListener("pointerup", take);
    slider.addEventListener("keyup", (event) => MOVES.has(event.key) && take());
    sliders.set(stimulus.id, { slider, shows });
    return el("div", { class: "row" }, playButton(stimulus.id, name, n < 9 ? String(n + 1) : n === 9 ? "0" : null), slider, shows);
  });
  const scale = el("div", { class: "row words", "aria-hidden": "true" }, el("span"), el("div", { class: "intervals" }, INTERVALS.map((word) => el("span", null, word))), el("span"));
  return {
    body: el("div", { class: "mushra" }, scale, rows),
    refresh() {
      for (const [id, { slider, shows }] of sliders) {
        const value = answerOf(trial).values[id];
        slider.disabled = player.heard !== id || !player.played.has(id);
        slider.closest(".row").classList.toggle("heard", player.heard === id);
        shows.textContent = value === undefined ? "not rated" : String(value);
        slider.setAttribute("aria-valuetext", value === undefined ? "not rated" : `${value}, ${INTERVALS[Math.min(4, Math.floor(value / 20))]}`);
      }
    },
    key(key) {
      const place = key === "0" ? 9 : Number(key) - 1;
      if (!/^[0-9]$/.test(key) || place >= stimuli.length) return false;
      const { id } = stimuli[place];
      (player.heard === id && player.playing ? Promise.resolve() : player.play(id)).then(() => sliders.get(id).slider.focus());
      return true;
    },
    waits: () => (stimuli.some((one) => !player.played.has(one.id)) && !isDone(trial) ? "Play every version before you go on." : ""),
    first: OPEN,
  };
}

/** A trial about one stimulus, with a choice: a value of the scale, or an option. */
function singleTrial(trial, entries, { play, waits, mayChoose }) {
  const [stimulus] = trial.stimuli;
  const group = choices(data.question, entries, answerOf(trial).values[stimulus.id], (value) => setValue(trial, stimulus.id, value));
  return {
    body: el("div", null, stimulus.clip !== null && el("div", { class: "sounds" }, playButton(stimulus.id, play, "Q")), stimulus.text && reading("Answer", stimulus.text), group),
    refresh: () => (group.disabled = !mayChoose(stimulus)),
    key: (key) => (key === "q" && stimulus.clip !== null ? (listenTo(stimulus.id), true) : chooseByKey(group, entries, key)),
    waits: () => (group.disabled ? waits : ""),
    first: stimulus.clip === null ? OPEN : stimulus.id,
  };
}

function ratingTrial(trial) {
  const entries = data.words.map(([value, word]) => ({ value, label: `${value} – ${word}`, key: String(value) }));
  return singleTrial(trial, entries, { play: "Play", waits: "Play the sound before you rate it.", mayChoose: () => mayRate(trial, trial.stimuli) });
}

function preferenceTrial(trial) {
  const stimuli = stimuliOf(trial, state.rater);
  const entries = [
    { value: stimuli[0].id, label: "A is better", key: "1" },
    { value: stimuli[1].id, label: "B is better", key: "2" },
    { value: "tie", label: "No difference", key: "3" },
  ];
  const group = choices(data.question, entries, answerOf(trial).values[""], (value) => setValue(trial, "", value));
  const sides = stimuli.map((one, n) =>
    el("div", { class: "side" }, one.clip === null ? el("h3", null, "AB"[n]) : playButton(one.id, "Play", "AB"[n]), one.text && el("p", { class: "said" }, one.text)),
  );
  return {
    body: el("div", null, el("div", { class: "sides" }, sides), group),
    refresh: () => (group.disabled = !mayRate(trial, stimuli)),
    key(key) {
      const side = ["a", "b"].indexOf(key);
      if (side >= 0 && stimuli[side].clip !== null) listenTo(stimuli[side].id);
      return side >= 0 || chooseByKey(group, entries, key);
    },
    waits: () => (group.disabled ? "Play A and B before you choose." : ""),
    first: stimuli[0].clip === null ? OPEN : stimuli[0].id,
  };
}

function optionsTrial(trial) {
  const entries = trial.choices.map((label, value) => ({ value, label, key: value < 9 ? String(value + 1) : null }));
  entries.push({ value: "none", label: "None of them, or several", key: "0" });
  const mayChoose = (stimulus) => stimulus.text || mayRate(trial, trial.stimuli);
  return singleTrial(trial, entries, { play: "Play the answer", waits: "Play the answer before you choose.", mayChoose });
}

function reviewTrial(trial) {
  const answer = answerOf(trial);
  const entries = [
    { value: "accept", label: "Accept it as it is", key: "a" },
    { value: "edit", label: "Edit its words", key: "e" },
    { value: "drop", label: "Drop it", key: "d" },
  ];
  const field = (name, text, rows) => {
    const area = el("textarea", { rows, spellcheck: "true", "data-field": name });
    area.value = answer.texts[name] ?? text;
    area.addEventListener("input", () => {
      if (area.value === text) delete answer.texts[name];
      else answer.texts[name] = area.value;
      remember();
    });
    return { area, shows: el("label", { class: "field" }, el("span", null, name), area) };
  };
  const fields = trial.edit.map(([name, text]) => field(name, text, Math.min(8, 1 + Math.ceil(text.length / 70) + text.split("\n").length - 1)));
  const why = field("Why it is dropped", "", 2);
  const group = choices(data.question, entries, answer.values[""], (value) => {
    setValue(trial, "", value);
    if (value === "edit") fields[0]?.area.focus();
    if (value === "drop") why.area.focus();
  });
  const shown = trial.edit.map(([name, text]) => reading(name, text));
  return {
    body: el("div", null, shown, group, fields.map((one) => one.shows), why.shows),
    refresh() {
      const chosen = answer.values[""];
      for (const one of shown) one.hidden = chosen === "edit";
      for (const one of fields) one.shows.hidden = chosen !== "edit";
      why.shows.hidden = chosen !== "drop";
    },
    key: (key) => chooseByKey(group, entries, key),
    waits: () => "",
    first: OPEN,
  };
}

const KINDS = { mushra: mushraTrial, rating: ratingTrial, preference: preferenceTrial, options: optionsTrial, review: reviewTrial };
const KEYS = {
  mushra: [["1 to 9, 0", "play a version and go to its slider"], ["Arrows, Page Up/Down", "move the slider by 1 or by 10"], ["R", "play the reference"]],
  rating: [["Q", "play"], [`${data.scale[0]} to ${data.scale[1]}`, "rate"]],
  preference: [["A, B", "play A or B"], ["1, 2, 3", "A is better, B is better, no difference"]],
  options: [["1 to 9, 0", "choose an option, or none of them"], ["Q", "play the answer, if it is spoken"]],
  review: [["A, E, D", "accept, edit, drop"], ["Esc", "leave a text that you are writing"]],
};
