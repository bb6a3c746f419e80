// One player for each clip: it changes between all codecs and the reference and keeps the position.
const listening = [];

function startListening() {
  for (const place of document.querySelectorAll("[data-clip]")) listening.push(listen(place, Number(place.dataset.clip)));
  const frame = () => {
    for (const one of listening) one();
    requestAnimationFrame(frame);
  };
  if (listening.length) requestAnimationFrame(frame);
}

function listen(place, clip) {
  const play = place.querySelector(".play");
  const position = place.querySelector("input");
  const time = place.querySelector(".time");
  const buttons = [...place.querySelectorAll("[data-track]")];
  const player = new Player(show);
  let loading = null;

  function show() {
    play.textContent = player.playing ? "Pause" : "Play";
    for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.dataset.track) === player.heard));
  }

  // Decoding takes time and memory, so it is done only when somebody wants to listen.
  function load() {
    loading ??= (async () => {
      time.textContent = "decoding …";
      for (const button of buttons) {
        const track = Number(button.dataset.track);
        try {
          player.tracks.set(track, await decode(clipOf.get(`${clip} ${track}`), 48000));
        } catch {
          button.disabled = true;
          button.title = "This browser cannot decode it.";
        }
      }
      position.max = String(player.duration);
      position.disabled = false;
      place.dataset.ready = "true";
    })();
    return loading;
  }

  play.addEventListener("click", async () => {
    await load();
    if (player.playing) {
      player.pause();
      return;
    }
    for (const other of others) if (other !== player) other.pause();
    player.play(player.heard ?? Number(buttons[0].dataset.track));
  });
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      await load();
      player.hear(Number(button.dataset.track));
    });
  }
  position.addEventListener("input", () => player.seek(Number(position.value)));
  others.push(player);

  return () => {
    if (!player.tracks.size) return;
    player.tick();
    if (document.activeElement !== position || player.playing) position.value = String(player.position);
    time.textContent = `${clock(player.position)} of ${clock(player.duration)}`;
  };
}
const others = [];
