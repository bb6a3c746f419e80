startSummary();
startBreakdown();
startPlots();
startSamples();
startDetail();
startFrames();
document.documentElement.dataset.ready = "true";
