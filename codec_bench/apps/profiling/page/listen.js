// One player for each clip: it changes between all codecs and the reference and keeps the position.
function startListening() {
  for (const place of document.querySelectorAll("[data-clip]")) listen(place);
  followPlayers();
}

function listen(place) {
  const position = place.querySelector("input");

  async function fill(player, buttons) {
    for (const button of buttons) {
      const { track } = button.dataset;
      try {
        player.tracks.set(track, await decode(clipOf.get(`${place.dataset.clip} ${track}`), 48000));
      } catch {
        button.disabled = true;
        button.title = "This browser cannot decode it.";
      }
    }
    position.max = String(player.duration);
    position.disabled = false;
  }

  const { player } = startPlayer(place, fill, () => {
    if (document.activeElement !== position || player.playing) position.value = String(player.position);
  });
  position.addEventListener("input", () => player.seek(Number(position.value)));
}
