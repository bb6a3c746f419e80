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
  if (player.playing && player.active === id) player.pause();
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

const MOVES = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

function sliderTrial(trial) {
  const stimuli = stimuliOf(trial, personOf(state));
  const [low, high] = data.scale;
  const word = (value) => data.labels[Math.min(4, Math.floor((5 * (value - low)) / (high - low)))];
  const written = (value) => value.toFixed(data.step < 1 ? 1 : 0);
  // Of two versions with difference grades one is the reference, and has the highest grade.
  const lacksBest = () => high === 5 && isDone(trial) && !stimuli.some((one) => answerOf(trial).values[one.id] === high);
  const sliders = new Map();
  const rows = stimuli.map((stimulus, n) => {
    const name = `Version ${n + 1}`;
    const slider = el("input", { type: "range", min: low, max: high, step: data.step, "aria-label": name, "data-stimulus": stimulus.id });
    const shows = el("output", { class: "score" });
    slider.value = String(answerOf(trial).values[stimulus.id] ?? low);
    const take = () => !slider.disabled && setValue(trial, stimulus.id, Number(slider.value));
    slider.addEventListener("input", take);
    // Where a slider already is, moving it there changes nothing, and is an answer all the same.
    slider.addEventListener("pointerup", take);
    slider.addEventListener("keyup", (event) => MOVES.has(event.key) && take());
    sliders.set(stimulus.id, { slider, shows });
    return el("div", { class: "row" }, playButton(stimulus.id, name, n < 9 ? String(n + 1) : n === 9 ? "0" : null), slider, shows);
  });
  const scale = el("div", { class: "row words", "aria-hidden": "true" }, el("span"), el("div", { class: "intervals" }, data.labels.map((label) => el("span", null, label))), el("span"));
  return {
    body: el("div", { class: "mushra" }, scale, rows),
    refresh() {
      for (const [id, { slider, shows }] of sliders) {
        const value = answerOf(trial).values[id];
        slider.disabled = player.active !== id || !player.played.has(id);
        slider.closest(".row").classList.toggle("active", player.active === id);
        shows.textContent = value === undefined ? "not rated" : written(value);
        slider.setAttribute("aria-valuetext", value === undefined ? "not rated" : `${written(value)}, ${word(value)}`);
      }
    },
    key(key) {
      const place = key === "0" ? 9 : Number(key) - 1;
      if (!/^[0-9]$/.test(key) || place >= stimuli.length) return false;
      const { id } = stimuli[place];
      (player.active === id && player.playing ? Promise.resolve() : player.play(id)).then(() => sliders.get(id).slider.focus());
      return true;
    },
    waits: () => (stimuli.some((one) => !player.played.has(one.id)) && !isDone(trial) ? "Play every version before you go on." : lacksBest() ? `Give ${written(high)} to the version that is the reference.` : ""),
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

/** The choices of a scale. Only the ends of some scales have words. */
const entriesOf = ({ words }) => words.map(([value, word]) => ({ value, label: word ? `${value} – ${word}` : String(value), key: String(Math.abs(value)) }));

function scaleTrial(trial) {
  const needsOpen = data.plays_reference && trial.open !== null;
  const mayChoose = () => mayRate(trial, trial.stimuli) && (!needsOpen || isDone(trial) || player.played.has(OPEN));
  const waits = needsOpen ? "Play the reference and the sound before you rate it." : "Play the sound before you rate it.";
  if (data.scales.length === 1) return { ...singleTrial(trial, entriesOf(data.scales[0]), { play: "Play", waits, mayChoose }), first: needsOpen ? OPEN : trial.stimuli[0].clip === null ? OPEN : trial.stimuli[0].id };
  const [stimulus] = trial.stimuli;
  // P.835: one half of the raters judges the speech first, the other half the background.
  const [one, two, ...rest] = data.scales;
  const scales = data.kind === "p835" && drawing(`${data.sheet} ${personOf(state)} scales`)() < 0.5 ? [two, one, ...rest] : data.scales;
  const ids = scales.map((scale) => `${stimulus.id}/${scale.name}`);
  const groups = scales.map((scale, n) => {
    const group = choices(scale.question, entriesOf(scale).map((entry) => ({ ...entry, key: null })), answerOf(trial).values[ids[n]], (value) => setValue(trial, ids[n], value));
    group.classList.toggle("ends", scale.words.some(([, word]) => !word));
    for (const input of group.querySelectorAll("input")) input.name = ids[n];
    return group;
  });
  return {
    body: el("div", null, el("div", { class: "sounds" }, playButton(stimulus.id, "Play", "Q")), groups),
    refresh: () => groups.forEach((group) => (group.disabled = !mayChoose())),
    key(key) {
      if (key === "q") return (listenTo(stimulus.id), true);
      const open = groups.findIndex((group, n) => answerOf(trial).values[ids[n]] === undefined);
      const at = groups.findIndex((group) => group.contains(document.activeElement));
      const place = open >= 0 ? open : at;
      return place >= 0 && chooseByKey(groups[place], entriesOf(scales[place]), key);
    },
    waits: () => (groups[0].disabled ? waits : isDone(trial) ? "" : "Answer every question before you go on."),
    first: stimulus.id,
  };
}

/** A trial about two stimuli: which is better, how the second compares with the first, or which one is X. */
function pairTrial(trial) {
  const stimuli = stimuliOf(trial, personOf(state));
  const x = trial.stimuli.find((one) => one.id === trial.x);
  const names = data.form === "comparison" ? ["First", "Second"] : ["A", "B"];
  const better = names.map((name, n) => ({ value: stimuli[n].id, label: x ? `X is ${name}` : `${name} is better`, key: String(n + 1) }));
  const ties = x ? [] : [{ value: "tie", label: "No difference", key: "3" }];
  const entries = data.form === "comparison" ? data.scales[0].words.map(([value, label], n) => ({ value, label, key: String(n + 1) })) : [...better, ...ties];
  const group = choices(data.question, entries, answerOf(trial).values[""], (value) => setValue(trial, "", value));
  const shown = [...stimuli.map((one, n) => [one, names[n], "AB"[n]]), ...(x ? [[x, "X", "X"]] : [])];
  const sides = shown.map(([one, name, key]) =>
    el("div", { class: "side" }, el("h3", null, name), one.clip !== null && playButton(one.id, "Play", key), one.text && el("p", { class: "said" }, one.text)),
  );
  return {
    body: el("div", null, el("div", { class: "sides" }, sides), group),
    refresh: () => (group.disabled = !mayRate(trial, trial.stimuli)),
    key(key) {
      const side = shown.findIndex(([, , own]) => own.toLowerCase() === key);
      if (side >= 0 && shown[side][0].clip !== null) listenTo(shown[side][0].id);
      return side >= 0 || chooseByKey(group, entries, key);
    },
    waits: () => (group.disabled ? `Play ${shown.map(([, name]) => name.toLowerCase().length > 1 ? `the ${name.toLowerCase()}` : name).join(" and ")} before you choose.` : ""),
    first: stimuli[0].clip === null ? OPEN : stimuli[0].id,
  };
}

/** A question to the rater before the test, mostly about sounds. */
function checkTrial(trial) {
  const entries = trial.choices.map((label, value) => ({ value, label, key: String(value + 1) }));
  const group = choices(trial.check, entries, answerOf(trial).values[""], (value) => setValue(trial, "", value));
  const names = ["First", "Second", "Third"];
  return {
    body: el("div", null, el("div", { class: "sounds" }, trial.stimuli.map((one, n) => playButton(one.id, names[n], "ABC"[n]))), group),
    refresh: () => (group.disabled = !mayRate(trial, trial.stimuli)),
    key(key) {
      const one = trial.stimuli["abc".indexOf(key)];
      if (one) listenTo(one.id);
      return Boolean(one) || chooseByKey(group, entries, key);
    },
    waits: () => (group.disabled ? "Play every sound before you choose." : ""),
    first: trial.stimuli[0]?.id ?? OPEN,
  };
}

/** A check whose answer is digits, which are written. */
function digitsTrial(trial) {
  const [stimulus] = trial.stimuli;
  const digits = el("input", { type: "text", inputmode: "numeric", autocomplete: "off", maxlength: 3, id: "digits", placeholder: "three digits" });
  digits.value = answerOf(trial).values[""] ?? "";
  digits.addEventListener("input", () => {
    if (/^[0-9]{3}$/.test(digits.value)) setValue(trial, "", digits.value);
    else {
      delete answerOf(trial).values[""];
      remember();
      refresh();
    }
  });
  return {
    body: el("div", null, el("div", { class: "sounds" }, playButton(stimulus.id, "Play the digits", "Q")), el("label", { class: "field digits" }, el("span", null, trial.check), digits)),
    refresh: () => (digits.disabled = !mayRate(trial, trial.stimuli)),
    key(key) {
      if (/^[0-9]$/.test(key)) digits.focus(); // where the digit then goes
      return key === "q" && (listenTo(stimulus.id), true);
    },
    waits: () => (digits.disabled ? "Play the sound before you write." : digits.value && !isDone(trial) ? "Write three digits, such as 407. Guess where you are not sure." : ""),
    first: stimulus.id,
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

const FORMS = { sliders: sliderTrial, number: scaleTrial, comparison: pairTrial, choice: pairTrial, option: optionsTrial, decision: reviewTrial };
const KEYS = {
  sliders: [["1 to 9, 0", "play a version and go to its slider"], ["Arrows, Page Up/Down", "move the slider by one or by ten steps"], ["R", "play the reference"]],
  number: [["Q", "play"], [`${data.scale[0]} to ${data.scale[1]}`, data.scales.length > 1 ? "answer the next question" : "rate"]],
  comparison: [["A, B", "play the first or the second"], ["1 to 7", "from much better to much worse"]],
  choice: data.trials.some((trial) => trial.x) ? [["A, B, X", "play A, B or X"], ["1, 2", "X is A, X is B"]] : [["A, B", "play A or B"], ["1, 2, 3", "A is better, B is better, no difference"]],
  option: [["1 to 9, 0", "choose an option, or none of them"], ["Q", "play the answer, if it is spoken"]],
  decision: [["A, E, D", "accept, edit, drop"], ["Esc", "leave a text that you are writing"]],
};
