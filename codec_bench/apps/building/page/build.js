startFrames();
document.documentElement.dataset.ready = "true";
