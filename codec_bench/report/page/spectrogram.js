// Spectrograms: a Hann window, an FFT per pixel column, levels in dB against the loudest point of the reference.
const FLOOR_DB = -80;
const DIFFERENCE_DB = 30;

function fftPlan(size) {
  const bits = Math.log2(size);
  const reversed = new Uint32Array(size);
  for (let n = 0; n < size; n += 1) {
    let r = 0;
    for (let b = 0; b < bits; b += 1) r |= ((n >> b) & 1) << (bits - 1 - b);
    reversed[n] = r;
  }
  const cosine = new Float32Array(size / 2);
  const sine = new Float32Array(size / 2);
  for (let n = 0; n < size / 2; n += 1) {
    cosine[n] = Math.cos((2 * Math.PI * n) / size);
    sine[n] = Math.sin((2 * Math.PI * n) / size);
  }
  return { size, reversed, cosine, sine };
}

// In place, radix 2; re and im hold the input in bit-reversed order.
function fft({ size, cosine, sine }, re, im) {
  for (let half = 1; half < size; half *= 2) {
    const stride = size / (2 * half);
    for (let start = 0; start < size; start += 2 * half) {
      for (let k = 0; k < half; k += 1) {
        const a = start + k;
        const b = a + half;
        const c = cosine[k * stride];
        const s = -sine[k * stride];
        const real = re[b] * c - im[b] * s;
        const imaginary = re[b] * s + im[b] * c;
        re[b] = re[a] - real;
        im[b] = im[a] - imaginary;
        re[a] += real;
        im[a] += imaginary;
      }
    }
  }
}

/** Power in (columns, bins): `columns` windows spread evenly over `samples`, bins from 0 Hz to half the rate. */
function powers(samples, rate, columns) {
  const size = 2 ** Math.round(Math.log2(rate * 0.032));
  const plan = fftPlan(size);
  const bins = size / 2 + 1;
  const window = new Float32Array(size);
  for (let n = 0; n < size; n += 1) window[n] = 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / size);
  const out = new Float32Array(columns * bins);
  const [re, im] = [new Float32Array(size), new Float32Array(size)];
  // The window's gain is removed, so that sounds of different rates, whose windows differ in length, share one scale.
  const gain = 1 / (size * size);
  const fill = (part, column) => {
    const start = Math.round(((column + 0.5) / columns) * samples.length - size / 2);
    for (let n = 0; n < size; n += 1) {
      const at = start + plan.reversed[n];
      part[n] = at >= 0 && at < samples.length ? samples[at] * window[plan.reversed[n]] : 0;
    }
  };
  // One transform holds two columns, as its real and its imaginary part; their symmetries tell them apart.
  for (let column = 0; column < columns; column += 2) {
    fill(re, column);
    if (column + 1 < columns) fill(im, column + 1);
    else im.fill(0);
    fft(plan, re, im);
    for (let bin = 0; bin < bins; bin += 1) {
      const other = (size - bin) % size;
      const real = re[bin] + re[other];
      const imaginary = im[bin] - im[other];
      out[column * bins + bin] = gain * (real * real + imaginary * imaginary);
      if (column + 1 === columns) continue;
      const nextReal = im[bin] + im[other];
      const nextImaginary = re[other] - re[bin];
      out[(column + 1) * bins + bin] = gain * (nextReal * nextReal + nextImaginary * nextImaginary);
    }
  }
  return { out, columns, bins, rate };
}

const peakPower = (spectrum) => spectrum.out.reduce((a, b) => Math.max(a, b), 0);

/** dB in (columns, rows), rows from `topHz` down to 0 Hz; a row is the loudest of its bins. Above its own rate: -Infinity. */
function levels(spectrum, rows, topHz, peak) {
  const { out, columns, bins, rate } = spectrum;
  const db = new Float32Array(columns * rows).fill(-Infinity);
  for (let row = 0; row < rows; row += 1) {
    const scale = ((topHz / (rate / 2)) * (bins - 1)) / rows;
    const from = Math.floor((rows - 1 - row) * scale);
    const to = Math.max(from + 1, Math.ceil((rows - row) * scale));
    if (from >= bins) continue;
    for (let column = 0; column < columns; column += 1) {
      let most = 0;
      for (let bin = from; bin < Math.min(to, bins); bin += 1) most = Math.max(most, out[column * bins + bin]);
      db[column * rows + row] = 10 * Math.log10(most / peak + 1e-20);
    }
  }
  return db;
}

function ramp(stops) {
  const table = new Uint8Array(256 * 3);
  for (let n = 0; n < 256; n += 1) {
    const at = (n / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    for (let k = 0; k < 3; k += 1) table[3 * n + k] = Math.round(stops[low][k] + (at - low) * (stops[low + 1][k] - stops[low][k]));
  }
  return table;
}
// Lightness grows evenly with the level, and with the size of a difference; blue and orange are also distinct with colour blindness.
const LEVEL_COLOURS = ramp([[0, 0, 4], [28, 16, 68], [79, 18, 123], [129, 37, 129], [181, 54, 122], [229, 80, 100], [251, 135, 97], [254, 194, 135], [252, 253, 191]]);
const DIFFERENCE_COLOURS = ramp([[160, 215, 255], [64, 150, 240], [24, 82, 160], [14, 38, 74], [12, 13, 17], [82, 38, 10], [168, 76, 12], [240, 138, 40], [255, 214, 150]]);

function paint(canvas, columns, rows, colours, index) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const shade = 3 * Math.max(0, Math.min(255, Math.round(255 * index(column * rows + row))));
      const pixel = 4 * (row * columns + column);
      image.data[pixel] = colours[shade];
      image.data[pixel + 1] = colours[shade + 1];
      image.data[pixel + 2] = colours[shade + 2];
      image.data[pixel + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}
const paintLevels = (canvas, columns, rows, db) => paint(canvas, columns, rows, LEVEL_COLOURS, (n) => 1 - db[n] / FLOOR_DB);
// If both are below the floor, nothing is audible and there is no difference to show.
const paintDifference = (canvas, columns, rows, db, reference) =>
  paint(canvas, columns, rows, DIFFERENCE_COLOURS, (n) => {
    const difference = Math.max(db[n], FLOOR_DB) - Math.max(reference[n], FLOOR_DB);
    return 0.5 + difference / (2 * DIFFERENCE_DB);
  });
