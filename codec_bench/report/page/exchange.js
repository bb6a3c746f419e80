// A question and its answers: the prompt, the expected answer, the answer, and how it was read.
const exchangeOf = new Map(data.exchanges.map(([system, sample, content]) => [`${system} ${sample}`, content]));

const isAsked = (n) => data.systems.some((_, s) => exchangeOf.has(`${s} ${n}`));

function exchange(n, order) {
  const found = order.map((s) => [s, exchangeOf.get(`${s} ${n}`)]).filter(([, content]) => content);
  if (!found.length) return [];
  const [, first] = found[0];
  const shared = found.every(([, content]) => content.prompt === first.prompt);
  const expected = (first.expected || []).join("\n");
  const question = el(
    "div",
    { class: "exchange" },
    shared && labelledText("prompt", first.prompt, "prompt"),
    labelledText("about it", (first.about || []).join("\n") || null, "about"),
    labelledText("expected", expected || null, "expected"),
    first.subsets && el("small", null, first.subsets),
  );
  const answers = found.map(([s, content]) => {
    const facts = [
      content.latency_s !== undefined && `${content.latency_s.toFixed(2)} s`,
      content.finish && `ended: ${content.finish}`,
      content.cut_s && `${content.cut_s.toFixed(1)} s of the sound were cut off`,
      content.cached && "from the cache",
    ].filter(Boolean);
    return el(
      "div",
      { class: "exchange" },
      el("h4", null, nameOf(s), facts.length > 0 && el("small", null, ` ${facts.join(", ")}`)),
      !shared && labelledText("prompt", content.prompt, "prompt"),
      content.status === "ok" ? labelledText("answered", content.answer, "answered") : labelledText(content.status, content.reason, "bad"),
      labelledText("reasoning, not scored", content.reasoning, "read"),
      labelledText("transcript", content.transcript, "answered"),
      content.unread ? labelledText("unparsed", content.unread, "bad") : content.read !== content.answer && labelledText("read as", content.read, "read"),
      labelledText("under controls", (content.controls || []).join("\n") || null, "controlled"),
      labelledText("verdict", (content.verdicts || []).join("\n") || null, "verdict"),
    );
  });
  return [el("h3", null, "Question and answer"), question, el("div", { class: "answers" }, answers)];
}
