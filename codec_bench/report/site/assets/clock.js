// Sounds that share one clock: all play at once and one is heard, so that changing between them keeps the position.
const APART_S = 0.04; // from here on a sound is set back to the clock

class SharedClock {
  constructor(sounds, changed) {
    this.sounds = sounds; // audio elements by track
    this.changed = changed;
    this.heard = sounds.keys().next().value;
    this.playing = false;
    this.at = 0;
    for (const [track, sound] of sounds) {
      sound.muted = track !== this.heard;
      sound.addEventListener("loadedmetadata", () => this.changed());
      sound.addEventListener("ended", () => track === this.longest && this.stop());
    }
  }

  get duration() {
    return Math.max(0, ...[...this.sounds.values()].map((sound) => (Number.isFinite(sound.duration) ? sound.duration : 0)));
  }

  get longest() {
    return [...this.sounds].reduce((a, b) => ((b[1].duration || 0) > (a[1].duration || 0) ? b : a))[0];
  }

  get position() {
    const leader = this.sounds.get(this.longest);
    return this.playing ? leader.currentTime : this.at;
  }

  async play() {
    if (this.position >= this.duration - 0.02) this.at = 0;
    const from = this.at;
    for (const sound of this.sounds.values()) sound.currentTime = Math.min(from, sound.duration || 0);
    this.playing = true;
    this.changed();
    await Promise.allSettled([...this.sounds.values()].filter((sound) => from < (sound.duration || Infinity)).map((sound) => sound.play()));
  }

  pause() {
    this.at = this.position;
    for (const sound of this.sounds.values()) sound.pause();
    this.playing = false;
    this.changed();
  }

  stop() {
    for (const sound of this.sounds.values()) sound.pause();
    this.playing = false;
    this.at = 0;
    this.changed();
  }

  hear(track) {
    this.heard = track;
    for (const [other, sound] of this.sounds) sound.muted = other !== track;
    this.changed();
  }

  seek(seconds) {
    const to = Math.min(Math.max(0, seconds), this.duration);
    this.at = to;
    for (const sound of this.sounds.values()) sound.currentTime = Math.min(to, sound.duration || 0);
    this.changed();
  }

  /** Sets sounds that drifted back to the clock. */
  tick() {
    if (!this.playing) return;
    const now = this.position;
    for (const sound of this.sounds.values()) {
      if (!sound.ended && Math.abs(sound.currentTime - now) > APART_S && now < (sound.duration || 0)) sound.currentTime = now;
    }
  }
}
