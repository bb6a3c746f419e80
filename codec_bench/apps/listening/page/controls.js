// What the trials of all kinds are made of: buttons that play, texts, and choices.

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
