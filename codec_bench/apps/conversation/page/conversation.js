// Players: the two tracks of a session are the channels of one sound, so they stay in step.
const players = [];

function startSession(place) {
  const duration = Number(place.dataset.duration);
  const picture = place.querySelector(".talk");
  const head = place.querySelector(".head");
  const play = place.querySelector(".play");
  const time = place.querySelector(".time");
  const buttons = [...place.querySelectorAll("[data-track]")];
  const player = new Player(show);
  let loading = null;

  function show() {
    play.textContent = player.playing ? "Pause" : "Play";
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.track === (player.heard ?? "both")));
  }

  function load() {
    loading ??= (async () => {
      const both = await decode(place.dataset.sound, 16000);
      player.tracks.set("both", both);
      for (const [channel, name] of ["user", "model"].entries()) {
        const one = new AudioBuffer({ length: both.length, numberOfChannels: 1, sampleRate: both.sampleRate });
        one.copyToChannel(both.getChannelData(channel), 0);
        player.tracks.set(name, one);
      }
      player.hear("both");
      place.dataset.ready = "true";
    })();
    return loading;
  }

  async function start() {
    await load();
    for (const other of players) if (other.player !== player) other.player.pause();
    await player.play(player.heard ?? "both");
  }

  play.addEventListener("click", () => (player.playing ? player.pause() : start()));
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      await load();
      player.hear(button.dataset.track);
    });
  }
  picture.addEventListener("click", async (event) => {
    const box = picture.getBoundingClientRect();
    await load();
    await player.seek(((event.clientX - box.left) / box.width) * duration);
    await start();
  });
  show();
  players.push({
    player,
    tick() {
      player.tick();
      const x = String((1000 * player.position) / duration);
      head.setAttribute("x1", x);
      head.setAttribute("x2", x);
      if (player.tracks.size) time.textContent = `${clock(player.position)} of ${clock(duration)}`;
    },
  });
}

for (const place of document.querySelectorAll("[data-sound]")) startSession(place);
function frame() {
  for (const one of players) if (one.player.tracks.size) one.tick();
  requestAnimationFrame(frame);
}
frame();
startFrames();
document.documentElement.dataset.ready = "true";
