startSummary();
startPlots();
startSamples();
startDetail();
document.documentElement.dataset.ready = "true";
