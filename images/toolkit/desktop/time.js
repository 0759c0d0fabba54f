// The time that the session has left, as the portal tells it at the app's own origin.
const ASK_MS = 60000;
const SOON_MINUTES = 15;

export function showTime(chip, named) {
  let ends = null;
  let ahead = 0; // the portal's clock minus this one, in milliseconds

  async function ask() {
    try {
      const answer = await fetch("/.slipway/session", { cache: "no-store" });
      if (answer.ok) take(await answer.json());
    } catch {
      // the next time
    }
    show();
    setTimeout(ask, ASK_MS);
  }

  function take(session) {
    named(session.name);
    ahead = Date.parse(session.now) - Date.now();
    ends = session.ends ? Date.parse(session.ends) : null;
    chip.title = session.unused ? "The session ends then, because it is not used." : session.kept;
  }

  function show() {
    const minutes = ends === null ? null : Math.max(0, Math.round((ends - Date.now() - ahead) / 60000));
    chip.hidden = minutes === null;
    if (minutes === null) return;
    chip.classList.toggle("soon", minutes < SOON_MINUTES);
    chip.textContent = `${inWords(minutes)} left`;
  }

  ask();
}

function inWords(minutes) {
  if (minutes < 100) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(minutes / 1440)} days`;
}
