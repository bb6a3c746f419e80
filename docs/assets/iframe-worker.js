// The search of the site runs in a worker, and browsers give none to a page that was opened from a file. For such a
// page this class takes the place of `Worker`: the same script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.document.open();
      inner.document.close();
      inner.postMessage = (data) => setTimeout(() => this.onmessage && this.onmessage({ data: structuredClone(data) }));
      this.ready = new Promise((resolve, reject) => {
        const script = inner.document.createElement("script");
        script.src = new URL(url, location.href);
        script.onload = resolve;
        script.onerror = reject;
        inner.document.documentElement.appendChild(script);
      });
    }
    postMessage(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(event));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
