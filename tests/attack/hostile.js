// What bob's page tries in alice's browser. Each attempt returns what it saw, in words.
window.attempts = {
  // Read another origin's page or data.
  async read(url, options) {
    try {
      const answer = await fetch(url, { credentials: "include", cache: "no-store", ...options });
      const text = await answer.text();
      return answer.type === "opaque" ? "opaque" : `${answer.status} ${text.slice(0, 200)}`;
    } catch (error) {
      return error.name;
    }
  },

  // Send a form, as a page may to any origin; the answer goes to a frame.
  async post(url, fields, kind) {
    const frame = document.createElement("iframe");
    frame.name = `f${Math.random()}`;
    const form = document.createElement("form");
    Object.assign(form, { action: url, method: "post", target: frame.name });
    form.enctype = kind || "application/x-www-form-urlencoded";
    for (const [name, value] of Object.entries(fields)) {
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name, value });
      form.append(field);
    }
    document.body.append(frame, form);
    form.submit();
    await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
    try {
      return `read ${frame.contentDocument.body.textContent.slice(0, 100)}`;
    } catch (error) {
      return error.name;
    }
  },

  // Use another origin's answer as a script, a picture, a style.
  async include(tag, url) {
    const element = document.createElement(tag);
    const outcome = new Promise((done) => {
      element.onload = () => done("loaded");
      element.onerror = () => done("refused");
    });
    if (tag === "link") Object.assign(element, { rel: "stylesheet", href: url });
    else element.src = url;
    document.head.append(element);
    return outcome;
  },

  async frame(url) {
    const frame = document.createElement("iframe");
    frame.src = url;
    const loaded = new Promise((done) => { frame.onload = done; setTimeout(done, 5000); });
    document.body.append(frame);
    await loaded;
    try {
      // Another origin's document is not there for us.
      return frame.contentDocument ? `read ${frame.contentDocument.documentElement.outerHTML}` : "SecurityError";
    } catch (error) {
      return error.name;
    }
  },

  async socket(url, protocols) {
    return new Promise((done) => {
      const socket = new WebSocket(url, protocols || []);
      socket.onopen = () => done("open");
      socket.onmessage = (event) => done(`open ${event.data}`);
      socket.onerror = () => done("refused");
    });
  },

  // What a window that was opened lets its opener see.
  look() {
    try {
      return `read ${window.victim.document.documentElement.outerHTML.slice(0, 200)}`;
    } catch (error) {
      return error.name;
    }
  },

  async worker() {
    try {
      await navigator.serviceWorker.register("/sw.js", { scope: "/" });
      await navigator.serviceWorker.ready;
      return "registered";
    } catch (error) {
      return error.name;
    }
  },

  // Overwrite, shadow and crowd out other cookies by every trick (crumbs: a jar full of big ones
  // would keep a browser from its apps, which no port of a shared host can be spared).
  toss(names) {
    const host = location.hostname;
    const domains = ["", host, `.${host}`, "localhost", ".localhost", "apps.localhost", "127.0.0.1", "0.0.1"];
    for (const name of names)
      for (const domain of domains)
        for (const path of ["/", "/sessions", "/lab", "/api", location.pathname])
          document.cookie = `${name}=tossed-by-bob; path=${path}; max-age=9999` + (domain && `; domain=${domain}`);
    for (const odd of ["=slipway=tossed-by-bob", "slipway", " slipway=tossed-by-bob", "slipway\t=tossed-by-bob"])
      document.cookie = odd + "; path=/";
    for (let i = 0; i < 700; i++) document.cookie = `flood${i}=x; path=/; max-age=9999`;
    return document.cookie.length;
  },
};
