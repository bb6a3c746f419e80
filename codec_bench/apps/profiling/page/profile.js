// Cells without a number show the reason on hover and on focus.
function startReasons() {
  for (const cell of document.querySelectorAll("[data-why]")) explain(cell, () => [cell.dataset.head, cell.dataset.why]);
}

if (qualityColumns.length) startPlots();
startReasons();
startCodebooks();
startFigures();
startLanguage();
startProbes();
startListening();
startFrames();
document.documentElement.dataset.ready = "true";
