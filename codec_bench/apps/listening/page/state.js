// The order in which a rater sees trials and stimuli: another one for each rater, and the same one again for the same rater.
// Then the answers so far: stored in the browser's storage, and written to the file that the rater saves.
/** A number from a text (FNV-1a, 32 bits). */
function numberOf(text) {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum >>> 0;
}

/** Numbers from 0 to below 1 (xorshift, 32 bits). */
function drawing(text) {
  let bits = numberOf(text) || 1;
  const next = () => {
    bits ^= bits << 13;
    bits ^= bits >>> 17;
    bits ^= bits << 5;
    return (bits >>> 0) / 2 ** 32;
  };
  for (let n = 0; n < 8; n += 1) next();
  return next;
}

function shuffled(list, text) {
  const next = drawing(text);
  const out = [...list];
  for (let last = out.length - 1; last > 0; last -= 1) {
    const other = Math.floor(next() * (last + 1));
    [out[last], out[other]] = [out[other], out[last]];
  }
  return out;
}

/** All trials as a person sees them: checks and practice first, in the order of the test. */
function arranged(person) {
  const before = data.trials.filter((trial) => trial.training || trial.check);
  const counted = data.trials.filter((trial) => !trial.training && !trial.check);
  return [...before, ...shuffled(counted, `${data.sheet} ${person} trials`)];
}

/** The stimuli of a trial in the order in which a person sees them, without X, which is one of the two others. */
function stimuliOf(trial, person) {
  return trial.check ? trial.stimuli : shuffled(trial.stimuli.filter((one) => one.id !== trial.x), `${data.sheet} ${person} ${trial.id}`);
}

const FORMAT = "codec-bench listening answers";
const STORE = `codec-bench listening ${data.sheet}`;
const trialOf = new Map(data.trials.map((trial) => [trial.id, trial]));
/** Kinds with one answer to a trial, which belongs to no single stimulus; and those that show two stimuli side by side. */
const hasSides = data.form === "comparison" || data.form === "choice";
const isWhole = hasSides || data.form === "decision";

/** Answers of a person. The number is drawn for whoever writes a name, so that two people of one name stay two. */
const newState = (rater) => ({ rater, person: [...crypto.getRandomValues(new Uint32Array(2))].map((part) => part.toString(16).padStart(8, "0")).join(""), at: 0, answers: {} });
const personOf = (held) => held.person || held.rater;
let state = { rater: "", at: 0, answers: {} };

/** What a stimulus is rated on: itself, or each of several scales. */
const parts = (stimulus) => (data.scales.length > 1 ? data.scales.map((scale) => `${stimulus.id}/${scale.name}`) : [stimulus.id]);
const requiredParts = (trial) => (isWhole || trial.check ? [""] : trial.stimuli.flatMap(parts));
const answerOf = (trial) => (state.answers[trial.id] ??= { values: {}, texts: {}, ms: 0 });
const isDone = (trial) => {
  const answer = state.answers[trial.id];
  return answer !== undefined && requiredParts(trial).every((id) => Object.hasOwn(answer.values, id));
};

/** What the browser keeps of this test, by the rater's name. */
function remembered() {
  try {
    const held = Object.entries(JSON.parse(localStorage.getItem(STORE)) || {});
    return new Map(held.filter(([rater, one]) => one && one.rater === rater && typeof one.answers === "object"));
  } catch {
    return new Map();
  }
}

function remember() {
  try {
    localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(remembered().set(state.rater, state))));
  } catch {
    // A browser may keep nothing for files. The answers can still be saved to a file.
  }
}

/** A checksum of a text of ASCII characters (CRC-32), as eight hexadecimal digits. */
function checksum(text) {
  let sum = ~0;
  for (let n = 0; n < text.length; n += 1) {
    sum ^= text.charCodeAt(n);
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (0xedb88320 & -(sum & 1));
  }
  return (~sum >>> 0).toString(16).padStart(8, "0");
}

const escaped = (text) => text.replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What the checksum of a file is of: everything in it that says something. */
function summed(file) {
  const rows = file.answers.map((row) => [row.trial, row.stimulus, row.value, row.ms, row.first ?? "", Object.entries(row.texts ?? {})]);
  const person = file.person ? [file.person] : [];
  return escaped(JSON.stringify([file.sheet, file.kind, file.rater, file.saved, file.complete, rows, ...person]));
}

function fileContent() {
  const answers = [];
  for (const trial of data.trials) {
    const answer = state.answers[trial.id];
    for (const [stimulus, value] of Object.entries(answer ? answer.values : {})) {
      const row = { trial: trial.id, stimulus, value, ms: Math.round(answer.ms) };
      if (hasSides && !trial.check) row.first = stimuliOf(trial, personOf(state))[0].id;
      if (Object.keys(answer.texts).length) row.texts = answer.texts;
      answers.push(row);
    }
  }
  const file = {
    format: FORMAT,
    version: 1,
    sheet: data.sheet,
    kind: data.kind,
    rater: state.rater,
    ...(state.person ? { person: state.person } : {}),
    saved: new Date().toISOString(),
    complete: data.trials.every(isDone),
    answers,
  };
  return `${JSON.stringify({ ...file, crc32: checksum(summed(file)) }, null, 1)}\n`;
}

/** Takes up the answers of a saved file; throws an Error that says what is wrong with it. */
function takeUp(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("This file is no saved test: it is not JSON.");
  }
  if (!file || file.format !== FORMAT || !Array.isArray(file.answers)) throw new Error("This file is no saved test.");
  if (file.sheet !== data.sheet) throw new Error("This file holds the answers to another test.");
  const answers = {};
  for (const row of file.answers) {
    const trial = trialOf.get(row.trial);
    if (!trial || !requiredParts(trial).includes(row.stimulus)) continue;
    const answer = (answers[trial.id] ??= { values: {}, texts: {}, ms: 0 });
    answer.values[row.stimulus] = row.value;
    answer.ms = Number(row.ms) || 0;
    for (const [name, words] of Object.entries(row.texts ?? {})) answer.texts[name] = String(words);
  }
  state = { rater: String(file.rater ?? ""), person: file.person ? String(file.person) : undefined, at: 0, answers };
}

function save() {
  const who = state.rater.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40);
  const address = URL.createObjectURL(new Blob([fileContent()], { type: "application/json" }));
  const link = el("a", { href: address, download: `answers-${data.sheet}-${who}.json`, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return link.download;
}
