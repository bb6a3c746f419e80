// One sample: its text, the answers of systems, and their sounds on one clock.

/**
 * Opens the dialog of a sample.
 *
 * id: of the sample. sides: [{label, key, system, n}], the rows that are compared, each with the position of the sample in its run.
 */
async function showSample(id, sides) {
  const found = await Promise.all(sides.map(async (side) => {
    const [text, run] = await Promise.all([loadText(side.key, side.n), loadRun(side.key)]);
    return { ...side, text, place: Object.keys(run.systems).indexOf(side.system), run };
  }));
  const first = found[0].text;
  const dialog = byId("detail");
  const tracks = [];
  const reference = found.find(({ text }) => text.sound?.[-1]);
  if (reference) tracks.push(["reference", reference.text.sound[-1]]);
  for (const { label, text, place } of found) if (text.sound?.[place]) tracks.push([label, text.sound[place]]);
  const close = el("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Close");
  const head = el("div", { class: "detail-head" }, el("div", { class: "detail-title" }, el("div", null, el("h2", { id: "detail-title", tabindex: -1 }, id), first.by && el("small", null, first.by)), el("div", null, close)));
  const body = el("div", { class: "detail-body" });
  const player = tracks.length ? soundPlayer(tracks) : null;
  if (player) head.append(player.transport);
  body.append(player ? player.list : el("p", { class: "lead" }, "The site has no audio of this sample."));
  const texts = [["prompt or text", first.text], ["expected", first.expected]].filter(([, text]) => text);
  if (texts.length) body.append(el("h3", null, "Texts"), el("div", null, texts.map(([label, text]) => labelledText(label, text))));
  const answered = found.filter(({ text, place }) => text.heard?.[place]);
  if (answered.length) body.append(el("h3", null, "Transcripts and answers"), el("div", null, answered.map(({ label, text, place }) => labelledText(label, text.heard[place]))));
  const lost = found.flatMap(({ label, text, place, run }) => (text.lost ?? []).filter(([s]) => s === place).map(([, m, reason]) => [label, Object.keys(run.metrics)[m], text.reasons[reason][0].replaceAll("_", " "), text.reasons[reason][1]]));
  if (lost.length) body.append(el("h3", null, "Without a value"), wordTable("Without a value", ["System", "Metric", "Status", "Reason"], lost));
  dialog.replaceChildren(head, body);
  dialog.addEventListener("close", () => player?.end(), { once: true });
  dialog.showModal();
  byId("detail-title").focus();
}

/** The transport and the tracks of sounds `[label, file]`. */
function soundPlayer(tracks) {
  const sounds = new Map(tracks.map(([, file], n) => [n, el("audio", { src: file, preload: "auto" })]));
  const play = el("button", { type: "button", class: "plain play" }, "Play");
  const time = el("span", { class: "time" });
  const slider = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "Position" });
  const whole = el("p", { class: "lead", hidden: true }, "The server of this site sends only whole files, so the position cannot be changed.");
  const buttons = tracks.map(([label], n) => el("button", { type: "button", class: "plain", "aria-pressed": "false", onclick: () => shared.hear(n) }, el("b", null, String.fromCharCode(65 + n)), ` ${label}`));
  const show = () => {
    play.textContent = shared.playing ? "Pause" : "Play";
    time.textContent = `${clock(shared.position)} / ${clock(shared.duration)}`;
    slider.max = shared.duration || 1;
    whole.hidden = shared.seekable;
    slider.disabled = !shared.seekable;
    slider.value = shared.position;
    slider.setAttribute("aria-valuetext", `${shared.position.toFixed(1)} of ${shared.duration.toFixed(1)} seconds`);
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(shared.active === n)));
  };
  const shared = new SharedClock(sounds, show);
  play.addEventListener("click", () => (shared.playing ? shared.pause() : shared.play()));
  slider.addEventListener("input", () => shared.seek(Number(slider.value)));
  const timer = setInterval(() => {
    if (!shared.playing) return;
    shared.tick();
    show();
  }, 100);
  const keys = (event) => {
    const track = event.key.length === 1 ? event.key.toLowerCase().charCodeAt(0) - 97 : -1;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (track >= 0 && track < tracks.length) shared.hear(track);
    else if (event.key === " " && !event.target.closest("button, input")) {
      event.preventDefault();
      shared.playing ? shared.pause() : shared.play();
    }
  };
  byId("detail").addEventListener("keydown", keys);
  show();
  return {
    transport: el("div", { class: "transport" }, play, time, slider),
    list: el("div", null, el("p", { class: "lead" }, "All sounds run on one clock; choose one with its button or its letter. Space plays and pauses."), whole, el("div", { class: "tracks", role: "group", "aria-label": "Which sound plays" }, buttons), [...sounds.values()]),
    end: () => {
      clearInterval(timer);
      byId("detail").removeEventListener("keydown", keys);
      shared.stop();
    },
  };
}
