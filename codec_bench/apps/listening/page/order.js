// The order in which a rater sees trials and stimuli: another one for each rater, and the same one again for the same rater.

/** A number from a text (FNV-1a, 32 bits). */
function numberOf(text) {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum >>> 0;
}

/** Numbers from 0 to below 1 (xorshift, 32 bits). */
function drawing(text) {
  let bits = numberOf(text) || 1;
  const next = () => {
    bits ^= bits << 13;
    bits ^= bits >>> 17;
    bits ^= bits << 5;
    return (bits >>> 0) / 2 ** 32;
  };
  for (let n = 0; n < 8; n += 1) next();
  return next;
}

function shuffled(list, text) {
  const next = drawing(text);
  const out = [...list];
  for (let last = out.length - 1; last > 0; last -= 1) {
    const other = Math.floor(next() * (last + 1));
    [out[last], out[other]] = [out[other], out[last]];
  }
  return out;
}

/** All trials as a rater sees them: practice first, in the order of the test. */
function arranged(rater) {
  const practice = data.trials.filter((trial) => trial.training);
  const counted = data.trials.filter((trial) => !trial.training);
  return [...practice, ...shuffled(counted, `${data.sheet} ${rater} trials`)];
}

const stimuliOf = (trial, rater) => shuffled(trial.stimuli, `${data.sheet} ${rater} ${trial.id}`);
