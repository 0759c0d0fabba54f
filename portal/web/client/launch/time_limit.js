// The wizard's time limit: written in full when its field is left, and proposed anew with the
// resource group or template until a person changes it.
const named = (/** @type {string} */ name) => document.querySelector(`#wizard [name="${name}"]`);
const chosen = (/** @type {string} */ name) => document.querySelector(`#wizard [name="${name}"]:checked`);
const UNITS = /^(?:([0-9]+(?:\.[0-9]+)?) ?d(?:ays?)?)? ?(?:([0-9]+(?:\.[0-9]+)?) ?h(?:ours?)?)? ?(?:([0-9]+) ?m(?:in(?:utes?)?)?)?$/i;

// Minutes of a text as the server reads it; NaN for anything else.
/** @param {string} text */
function minutes(text) {
  const clean = (text ?? "").trim();
  if (/^[0-9]{1,6}$/.test(clean)) return Number(clean);
  const clock = /^([0-9]{1,4}):([0-5][0-9])$/.exec(clean);
  if (clock) return Number(clock[1]) * 60 + Number(clock[2]);
  const found = clean && UNITS.exec(clean);
  if (!found) return NaN;
  const [days, hours, rest] = found.slice(1).map((part) => Number(part ?? 0));
  return Math.round(days * 1440 + hours * 60 + rest);
}

/** @param {number} number */
function written(number) {
  const parts = [[Math.floor(number / 1440), "d"], [Math.floor(number / 60) % 24, "h"], [number % 60, "min"]];
  return parts.filter(([amount]) => amount).map((part) => part.join(" ")).join(" ");
}

/** @param {string} text */
function put(text) {
  const field = named("time_limit");
  if (field.value === text) return;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function leave() {
  const field = named("time_limit");
  const number = minutes(field.value);
  if (!field.value.trim()) put(named("time_proposed").value);
  else if (number >= 1) put(written(number));
}

function propose() {
  const proposed = named("time_proposed");
  if (!proposed) return;
  const text = chosen("template")?.dataset.timeLimit
    || (chosen("resource_group") ? chosen("resource_group").dataset.defaultTime ?? "" : proposed.value);
  const untouched = [proposed.value, ""].includes(named("time_limit").value.trim());
  proposed.value = text;
  named("time_limit").placeholder = text || "no limit";
  if (untouched) put(text);
}

// The + and − buttons: by 15 minutes below an hour, by an hour above, by 4 hours above 12.
/** @param {number} direction */
function step(direction) {
  const number = minutes(named("time_limit").value) || minutes(named("time_proposed").value) || 60;
  const from = number + direction;
  const by = from < 60 ? 15 : from < 720 ? 60 : 240;
  const value = (direction > 0 ? Math.floor(number / by) + 1 : Math.ceil(number / by) - 1) * by;
  const most = minutes(document.querySelector("#wizard [data-bound=time]")?.textContent) || Infinity;
  put(written(Math.min(Math.max(15, value), most)));
}

document.addEventListener("focusout", ({ target }) => {
  if (target.name === "time_limit" && target === named("time_limit")) leave();
});
document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Enter" && target.name === "time_limit") leave();
}, true);
document.addEventListener("change", ({ target }) => {
  if (["resource_group", "template"].includes(target.name)) propose();
});
document.addEventListener("click", ({ target }) => {
  if (target.closest?.("[data-longer]")) step(1);
  else if (target.closest?.("[data-shorter]")) step(-1);
});

function prepare() {
  for (const button of document.querySelectorAll("#wizard [data-longer], #wizard [data-shorter]")) button.hidden = false;
}
document.addEventListener("htmx:afterSettle", prepare);
prepare();
