// The two tracks of a session are the channels of one sound, so they stay in step.
function startSession(place) {
  const duration = Number(place.dataset.duration);
  const picture = place.querySelector(".talk");
  const head = place.querySelector(".head");

  async function fill(player) {
    const both = await decode(place.dataset.sound, 16000);
    player.tracks.set("both", both);
    for (const [channel, name] of ["user", "model"].entries()) {
      const one = new AudioBuffer({ length: both.length, numberOfChannels: 1, sampleRate: both.sampleRate });
      one.copyToChannel(both.getChannelData(channel), 0);
      player.tracks.set(name, one);
    }
  }

  const { player, load, start } = startPlayer(place, fill, () => {
    const x = String((1000 * player.position) / duration);
    head.setAttribute("x1", x);
    head.setAttribute("x2", x);
  });
  picture.addEventListener("click", async (event) => {
    const box = picture.getBoundingClientRect();
    await load();
    await player.seek(((event.clientX - box.left) / box.width) * duration);
    await start();
  });
}

for (const place of document.querySelectorAll("[data-sound]")) startSession(place);
followPlayers();
startFrames();
document.documentElement.dataset.ready = "true";
