// Several players on a page, of which one sounds: a button that plays and pauses, one for each track, and the time.
const players = [];

// `fill(player, buttons)` decodes the tracks. That takes time and memory, so it is done only when somebody wants to listen.
function startPlayer(place, fill, tick) {
  const play = place.querySelector(".play");
  const time = place.querySelector(".time");
  const buttons = [...place.querySelectorAll("[data-track]")];
  const player = new Player(show);
  let loading = null;

  const chosen = () => player.active ?? buttons[0].dataset.track;

  function show() {
    play.textContent = player.playing ? "Pause" : "Play";
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.track === chosen()));
  }

  function load() {
    loading ??= (async () => {
      time.textContent = "decoding …";
      await fill(player, buttons);
      place.dataset.ready = "true";
    })();
    return loading;
  }

  async function start() {
    await load();
    for (const other of players) if (other.player !== player) other.player.pause();
    await player.play(chosen());
  }

  play.addEventListener("click", () => (player.playing ? player.pause() : start()));
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      await load();
      player.hear(button.dataset.track);
    });
  }
  show();
  players.push({ player, tick: () => {
    player.tick();
    tick(player);
    time.textContent = `${clock(player.position)} of ${clock(player.duration)}`;
  } });
  return { player, load, start };
}

function followPlayers() {
  for (const { player, tick } of players) if (player.tracks.size) tick();
  if (players.length) requestAnimationFrame(followPlayers);
}
