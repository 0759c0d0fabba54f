// Uploads on the Files page: chosen or dropped files go to the queue (upload.js), whose items are
// lines of the panel. Those of an earlier visit go on after the same files are chosen again.
(() => {
  const { size, span, counted, visible, nameOf, parentOf } = slipwayWords;
  const LINES = 30; // single lines of the panel; further files are only counted
  const total = document.querySelector("[data-upload-total]");
  const lines = new Set();
  const settled = new Set(["done", "failed", "cancelled"]);
  const asked = []; // conflicts that wait for an answer, one dialog at a time
  let asking = false;
  let begun = false;

  slipwayUploads.ensureServer = async () => {
    const answer = await slipwayAsk.admit();
    if (!answer.ok) throw new Error("not admitted");
  };

  function add(files, folder) {
    if (!files.length) return;
    begun = true;
    slipwayUploads.add(files, folder);
    slipwayWords.say(`Uploading ${counted(files.length, "file")}.`);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-upload]");
    if (!button) return;
    const folder = slipwayFiles.here();
    try {
      add(await slipwayUploadFiles.pick({ folder: button.dataset.upload === "folder" }), folder);
    } catch (error) {
      slipwayWork.note(`These files could not be read: ${error.message}`, true);
    }
  });

  // Dropping, anywhere on the list.
  const zone = (event) => (event.dataTransfer?.types.includes("Files") ? document.querySelector("#drop") : null);
  function over(wanted) {
    document.getElementById("drop")?.classList.toggle("is-over", wanted);
  }
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // else the browser would leave the page and open the file
    const may = zone(event) && "writable" in slipwayFiles.folder().dataset;
    event.dataTransfer.dropEffect = may ? "copy" : "none";
    over(Boolean(may));
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
  document.addEventListener("drop", async (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    over(false);
    if (!slipwayFiles.folder() || !("writable" in slipwayFiles.folder().dataset)) return;
    const into = event.target.closest?.("tr[data-folder]")?.dataset.path ?? slipwayFiles.here();
    try {
      add(await slipwayUploadFiles.dropped(event.dataTransfer), into);
    } catch (error) {
      slipwayWork.note(`What was dropped could not be read: ${error.message}`, true);
    }
  });

  // Lines of the panel
  const WORDS = {
    waiting: () => "Waits",
    running: (item) => [`${size(item.sent)} of ${size(item.size)}`, item.rate ? `${size(item.rate)}/s` : "", item.remaining ? `${span(item.remaining)} left` : ""].filter(Boolean).join(" · "),
    retrying: (item) => `${size(item.sent)} of ${size(item.size)} · the connection is lost, trying again`,
    paused: (item) => `${size(item.sent)} of ${size(item.size)} · paused`,
    asking: () => "This name exists",
    done: (item) => `${size(item.size)} · uploaded`,
    failed: (item) => item.problem,
    cancelled: () => "Cancelled",
  };
  const STATES = { waiting: "running", running: "running", retrying: "paused", paused: "paused", asking: "asking", done: "good", failed: "bad", cancelled: "bad" };
  const ICONS = { done: "check-circle-fill", failed: "exclamation-triangle-fill", asking: "question-circle-fill" };

  function actions(item) {
    const cancel = ["Cancel", "x-lg", () => slipwayUploads.cancel(item.id)];
    if (["waiting", "running", "retrying"].includes(item.state)) return [["Pause", "pause-fill", () => slipwayUploads.pause(item.id)], cancel];
    if (item.state === "paused") return [["Go on", "play-fill", () => slipwayUploads.resume(item.id)], cancel];
    if (item.state === "failed") return [["Try again", "arrow-clockwise", () => slipwayUploads.resume(item.id)], ["Hide", "x-lg", () => drop(item)]];
    return item.state === "asking" ? [cancel] : [["Hide", "x-lg", () => drop(item)]];
  }

  function drop(item) {
    lines.delete(item.id);
    slipwayWork.remove(`upload-${item.id}`);
    if (item.state === "failed") slipwayUploads.cancel(item.id);
  }

  function line(item) {
    if (item.state === "cancelled") {
      drop(item);
      return;
    }
    if (!lines.has(item.id) && lines.size >= LINES && !["failed", "asking"].includes(item.state)) return;
    lines.add(item.id);
    slipwayWork.put(`upload-${item.id}`, {
      title: visible(item.name), state: STATES[item.state], share: item.size ? item.sent / item.size : 0,
      icon: ICONS[item.state] ?? "upload", detail: WORDS[item.state](item), actions: actions(item),
    });
    if (item.state === "done") setTimeout(() => { if (item.state === "done") drop(item); }, 4000);
  }

  function sum() {
    const live = slipwayUploads.items.filter((item) => !settled.has(item.state));
    total.hidden = live.length === 0;
    if (!live.length) return;
    const rate = live.reduce((all, item) => all + item.rate, 0);
    const left = live.reduce((all, item) => all + item.size - item.sent, 0);
    total.textContent = `${counted(live.length, "upload")} left, ${size(left)}${rate ? ` · ${size(rate)}/s · ${span(left / rate)}` : ""}`;
  }

  const drawn = new Map(); // id → [state, time]: progress is drawn a few times a second
  let refreshing = 0;
  slipwayUploads.events.addEventListener("change", ({ detail: item }) => {
    const [state, time] = drawn.get(item.id) ?? ["", 0];
    if (state === item.state && Date.now() - time < 250) return;
    drawn.set(item.id, [item.state, Date.now()]);
    line(item);
    sum();
    if (item.state === "failed" && state !== "failed") slipwayWords.say(`${item.name}: ${item.problem}`);
    if (item.state === "done" && slipwayFiles.folder() && item.target.startsWith(`${slipwayFiles.here()}/`)) {
      clearTimeout(refreshing);
      refreshing = setTimeout(() => slipwayFiles.refresh(), 500);
    }
    if (begun && slipwayUploads.items.every((one) => settled.has(one.state))) {
      begun = false;
      const failed = slipwayUploads.items.filter((one) => one.state === "failed").length;
      slipwayWords.say(failed ? `${counted(failed, "upload")} failed.` : "All uploads are complete.");
    }
  });

  slipwayUploads.events.addEventListener("conflict", ({ detail }) => {
    asked.push(detail);
    answer();
  });
  async function answer() {
    if (asking || document.querySelector("dialog[open]")) {
      if (!asking) setTimeout(answer, 500);
      return;
    }
    const next = asked.shift();
    if (!next) return;
    if (next.item.state !== "asking") {
      answer();
      return;
    }
    asking = true;
    const chosen = await slipwayDo.exists(`“${visible(next.item.name)}” exists already`,
      `In “${nameOf(parentOf(next.item.target))}”. Replace it with the one that you upload, keep both, or skip this upload?`, slipwayUploads.items.length > 1);
    asking = false;
    if (chosen) next.answer(chosen.value, chosen.all);
    else slipwayUploads.cancel(next.item.id);
    answer();
  }

  // Unfinished ones of an earlier visit.
  async function earlier() {
    const { uploads } = await slipwayAsk.get("uploads").catch(() => ({ uploads: [] }));
    const kept = await slipwayUploadFiles.kept();
    for (const one of uploads.slice(0, LINES)) {
      const id = `earlier-${one.id}`;
      const mine = kept.some(({ target }) => target === one.path);
      const share = one.length ? one.offset / one.length : 0;
      slipwayWork.put(id, {
        title: visible(one.name), state: "paused", share, icon: "upload",
        detail: `${size(one.offset)} of ${size(one.length)} of an earlier upload to “${nameOf(parentOf(one.path))}”. ${mine ? "" : "Choose the same file to go on. "}Kept until ${new Date(one.expires * 1000).toLocaleString()}.`,
        actions: [
          mine ? ["Choose: go on", "play-fill", () => goOn(uploads)] : ["Choose file", "folder2-open", () => again(one, uploads)],
          ["Discard", "trash3", () => discard(one)],
        ],
      });
    }
  }

  async function goOn(uploads) {
    begun = true;
    await slipwayUploadFiles.goOn();
    clear(uploads);
  }

  async function again(one, uploads) {
    const files = await slipwayUploadFiles.pick();
    begun = true;
    const rest = [];
    for (const each of files) {
      const file = each.file ?? each;
      const match = uploads.find((known) => known.length === file.size && visible(known.name) === visible(file.name)) ?? null;
      if (match) slipwayUploads.add([each], parentOf(match.path));
      else rest.push(file.name);
    }
    if (rest.length) slipwayWork.note(`Not one of the unfinished uploads: ${rest.map(visible).join(", ")}. Its name and size must be the same.`, true);
    clear(uploads);
  }
  function clear(uploads) {
    for (const one of uploads) {
      if (slipwayUploads.items.some((item) => item.target === one.path)) slipwayWork.remove(`earlier-${one.id}`);
    }
  }
  const discard = (one) => slipwayAsk.change("uploads", one.id, {}, "DELETE")
    .then(() => slipwayWork.remove(`earlier-${one.id}`)).catch((error) => slipwayWork.note(error.message, true));

  slipwayWork.onClose(() => {
    for (const item of slipwayUploads.items) if (settled.has(item.state)) drop(item);
  });
  addEventListener("DOMContentLoaded", earlier);
})();
