// How data files come: each is a script that calls `codecBench(NAME, PAYLOAD)`, since a page that is opened from disk reads no JSON.
const loaded = new Map();
globalThis.codecBench = (name, payload) => loaded.set(name, payload);
const underway = new Map();

/** The payload of `data/NAME.js`. */
function load(name) {
  if (!underway.has(name)) {
    underway.set(
      name,
      new Promise((resolve, reject) => {
        const missing = () => reject(new Error(`The file data/${name}.js of this site cannot be read.`));
        if (!/^[\w-]+(\/[\w-]+)*$/.test(name)) return missing();
        const script = el("script", { src: `data/${name}.js`, onerror: missing });
        script.addEventListener("load", () => (loaded.has(name) ? resolve(loaded.get(name)) : missing()));
        document.head.append(script);
      }),
    );
  }
  return underway.get(name);
}

/** What is known of the samples of a run: ids, units, groups, and the scores of one metric by the position of the system. */
const loadSamples = (key) => load(`runs/${key}/samples`);
const loadRun = (key) => load(`runs/${key}/run`);

/** The scores of one system and metric of a run: what each sample adds above and below, and whether they are a fold. */
async function loadScores(key, system, metric) {
  const run = await loadRun(key);
  const m = Object.keys(run.metrics).indexOf(metric);
  const s = Object.keys(run.systems).indexOf(system);
  if (m < 0 || s < 0) throw new Error(`The run ${run.name} has no ${metric} of ${system}.`);
  const [values, samples] = await Promise.all([load(`runs/${key}/values-${m}`), loadSamples(key)]);
  return { ...values.systems[s], fold: values.fold, samples, run };
}

/** The texts of a sample, where its sound is, and why scores are missing. */
async function loadText(key, n) {
  const run = await loadRun(key);
  const chunk = await load(`runs/${key}/texts-${Math.floor(n / run.chunk)}`);
  return { ...chunk.samples[n % run.chunk], reasons: chunk.reasons };
}
