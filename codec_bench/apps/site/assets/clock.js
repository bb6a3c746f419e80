// Sounds that share one clock: all play at once and one is audible, so that changing between them keeps the position.
const APART_S = 0.015; // from here on a sound runs faster or slower until it is back at the clock
const JUMP_S = 0.5; // from here on it jumps there, where its server lets it
const FASTER = 0.25; // by how much of its speed at most

class SharedClock {
  constructor(sounds, changed) {
    this.sounds = sounds; // audio elements by track
    this.changed = changed;
    this.active = sounds.keys().next().value;
    this.playing = false;
    this.at = 0;
    for (const [track, sound] of sounds) {
      sound.muted = track !== this.active;
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

  /** The sound that the others follow: the one that is audible, and once it has ended the longest. */
  get leader() {
    const leader = this.sounds.get(this.active);
    return leader.ended || !leader.duration ? this.sounds.get(this.longest) : leader;
  }

  get position() {
    return this.playing ? this.leader.currentTime : this.at;
  }

  /** Whether the position can be changed: a server that sends whole files only lets no sound begin in its middle. */
  get seekable() {
    return [...this.sounds.values()].every((sound) => !sound.duration || canJump(sound));
  }

  /** Sets a sound to a position; one that waits there already is left alone, since it could not come back everywhere. */
  place(sound, seconds) {
    const to = Math.min(seconds, sound.duration || 0);
    if (Math.abs(sound.currentTime - to) > APART_S) sound.currentTime = to;
  }

  async play() {
    if (this.position >= this.duration - 0.02) this.at = 0;
    const from = this.at;
    for (const sound of this.sounds.values()) this.place(sound, from);
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
    this.active = track;
    for (const [other, sound] of this.sounds) sound.muted = other !== track;
    this.changed();
  }

  seek(seconds) {
    const to = Math.min(Math.max(0, seconds), this.duration);
    this.at = to;
    for (const sound of this.sounds.values()) this.place(sound, to);
    this.changed();
  }

  /** Brings sounds that drifted back to the clock. A jump takes time, so small differences are corrected by the speed. */
  tick() {
    if (!this.playing) return;
    const [leader, now] = [this.leader, this.position];
    for (const sound of this.sounds.values()) {
      const behind = sound === leader || sound.ended || now >= (sound.duration || 0) ? 0 : now - sound.currentTime;
      if (Math.abs(behind) > JUMP_S && canJump(sound)) sound.currentTime = now;
      sound.playbackRate = Math.abs(behind) < APART_S ? 1 : 1 + Math.min(FASTER, Math.max(-FASTER, 4 * behind));
    }
  }
}

const canJump = (sound) => sound.seekable.length > 0 && sound.seekable.end(sound.seekable.length - 1) > 0;
