// Loads the page again once the demo is prepared.
const SECONDS = 1;

async function isPrepared() {
  try {
    return (await fetch(location.href, { cache: "no-store" })).status !== 503;
  } catch {
    return false;
  }
}

async function wait() {
  if (await isPrepared()) location.reload();
  else setTimeout(wait, SECONDS * 1000);
}

setTimeout(wait, SECONDS * 1000);
