startSummary();
startPlots();
startSamples();
startDetail();
startFrames();
document.documentElement.dataset.ready = "true";
