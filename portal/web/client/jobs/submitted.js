// Redirects to the page of a job as soon as it exists.
const SECONDS = 2;

async function look() {
  try {
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } });
    if (answer.redirected) {
      location.replace(answer.url);
      return;
    }
  } catch {
    // The portal cannot be reached: try again.
  }
  setTimeout(look, SECONDS * 1000);
}

setTimeout(look, SECONDS * 1000);
