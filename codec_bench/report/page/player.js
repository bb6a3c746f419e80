// The player. Sounds are decoded once and share one clock, so that changing between them keeps the exact position.
const clipOf = new Map(data.clips.map(([sample, system, n]) => [`${sample} ${system}`, n]));
const savedOf = new Map(data.saved.map(([sample, system, link]) => [`${sample} ${system}`, link]));

function clipBytes(clip) {
  const text = atob(byId(`clip-${clip}`).textContent);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n += 1) bytes[n] = text.charCodeAt(n);
  return bytes;
}

// Decoding resamples to the context's rate; a FLAC or WAV file says its own, and the data knows the reference's.
function ownRate(bytes, otherwise) {
  const view = new DataView(bytes.buffer);
  const magic = String.fromCharCode(...bytes.subarray(0, 4));
  if (magic === "fLaC") return (view.getUint32(18) >>> 12) || otherwise;
  if (magic === "RIFF" && bytes.length > 28) return view.getUint32(24, true) || otherwise;
  return otherwise;
}

const decode = (clip, rate) => decodeBytes(clipBytes(clip), rate);

async function decodeBytes(bytes, rate) {
  let context;
  try {
    context = new OfflineAudioContext(1, 1, ownRate(bytes, rate || 48000));
  } catch {
    context = new OfflineAudioContext(1, 1, 48000);
  }
  return context.decodeAudioData(bytes.buffer);
}

function mono(buffer) {
  const out = new Float32Array(buffer.length);
  for (let channel = 0; channel < buffer.numberOfChannels; channel += 1) {
    const from = buffer.getChannelData(channel);
    for (let n = 0; n < out.length; n += 1) out[n] += from[n] / buffer.numberOfChannels;
  }
  return out;
}

class Player {
  constructor(changed) {
    this.changed = changed;
    this.tracks = new Map();
    this.context = null;
    this.playing = null;
    this.at = 0;
    this.active = null;
    this.loop = false;
  }

  get duration() {
    return Math.max(0, ...[...this.tracks.values()].map((buffer) => buffer.duration));
  }

  get position() {
    if (!this.playing) return this.at;
    const passed = this.playing.at + Math.max(0, this.context.currentTime - this.playing.since);
    return Math.min(passed, this.duration);
  }

  async play(track = this.active) {
    if (!this.tracks.has(track)) return;
    this.hear(track);
    if (this.playing) return;
    this.context ??= new AudioContext();
    await this.context.resume();
    if (this.playing) return;
    if (this.at >= this.duration - 0.01) this.at = 0;
    const since = this.context.currentTime + 0.03;
    const voices = new Map();
    for (const [key, buffer] of this.tracks) {
      const source = new AudioBufferSourceNode(this.context, { buffer });
      const gain = new GainNode(this.context, { gain: key === this.active ? 1 : 0 });
      source.connect(gain).connect(this.context.destination);
      source.start(since, Math.min(this.at, buffer.duration));
      voices.set(key, { source, gain });
    }
    this.playing = { since, at: this.at, voices };
    this.changed();
  }

  pause() {
    if (!this.playing) return;
    this.at = this.position;
    for (const { source } of this.playing.voices.values()) source.stop();
    this.playing = null;
    this.changed();
  }

  // A short fade, so that the change makes no click.
  hear(track) {
    if (!this.tracks.has(track)) return;
    this.active = track;
    if (this.playing) {
      for (const [key, { gain }] of this.playing.voices) gain.gain.setTargetAtTime(key === track ? 1 : 0, this.context.currentTime, 0.004);
    }
    this.changed();
  }

  async seek(seconds) {
    const again = this.playing !== null;
    this.pause();
    this.at = Math.min(Math.max(0, seconds), this.duration);
    if (again) await this.play();
    this.changed();
  }

  // At the end the position returns to the start, and playing goes on if it loops.
  tick() {
    if (!this.playing || this.position < this.duration) return;
    this.pause();
    this.at = 0;
    if (this.loop) this.play();
    else this.changed();
  }

  clear() {
    this.pause();
    this.tracks.clear();
    this.at = 0;
    this.active = null;
  }
}
