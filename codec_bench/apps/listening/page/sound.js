// The sounds of a trial. They play from one clock, so that changing between them keeps the exact position.
const OPEN = "open";
const FADE_S = 0.005;
const STEPS = 33;
// A raised cosine, as ITU-R BS.1534-3, section 5.3, asks for: one sound fades out before the other fades in.
const RISE = Float32Array.from({ length: STEPS }, (_, n) => 0.5 - 0.5 * Math.cos((Math.PI * n) / (STEPS - 1)));
const FALL = Float32Array.from(RISE).reverse();

/** The bytes of a sound. In the page they are combined with a sequence that depends on the number of the clip. */
function soundBytes(clip) {
  const bytes = clipBytes(clip);
  const key = Math.imul(clip + 1, 0x01000193);
  for (let n = 0; n < bytes.length; n += 1) {
    let mixed = Math.imul(n + key, 0x9e3779b1);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x85ebca6b);
    mixed ^= mixed >>> 13;
    bytes[n] ^= mixed & 0xff;
  }
  return bytes;
}

class TrialPlayer extends Player {
  constructor(changed) {
    super(changed);
    this.played = new Set();
    this.broken = new Set();
  }

  async play(track = this.active) {
    await super.play(track);
    if (!this.playing) return;
    this.played.add(this.active);
    this.changed();
  }

  hear(track) {
    if (!this.tracks.has(track)) return;
    const before = this.active;
    this.active = track;
    if (this.playing) this.played.add(track);
    if (this.playing && before !== track) this.fade(before, track);
    this.changed();
  }

  fade(from, to) {
    const now = this.context.currentTime;
    for (const [key, { gain }] of this.playing.voices) {
      gain.gain.cancelScheduledValues(0);
      gain.gain.setValueAtTime(key === from ? 1 : 0, now);
      if (key === from) gain.gain.setValueCurveAtTime(FALL, now + 0.001, FADE_S);
      if (key === to) gain.gain.setValueCurveAtTime(RISE, now + 0.001 + FADE_S, FADE_S);
    }
  }

  /** Decodes the sounds of a trial, in place of those that were there; gives false if another trial was opened meanwhile. */
  async load(tracks, isCurrent) {
    this.clear();
    this.played.clear();
    this.broken.clear();
    const decoded = await Promise.all(
      tracks.map(async ([key, clip]) => {
        try {
          return [key, await decodeBytes(soundBytes(clip), 48000)];
        } catch {
          return [key, null];
        }
      }),
    );
    if (!isCurrent()) return false;
    for (const [key, buffer] of decoded) {
      if (buffer) this.tracks.set(key, buffer);
      else this.broken.add(key);
    }
    return true;
  }
}
