load("index").then(
  (payload) => {
    index = payload;
    byId("site-title").textContent = index.title;
    addEventListener("hashchange", drawView);
    drawView();
  },
  (error) => {
    byId("main").replaceChildren(el("h1", null, "This site cannot be shown"), el("p", { class: "banner" }, error.message));
    document.documentElement.dataset.ready = "failed";
  },
);
