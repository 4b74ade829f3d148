// What the session is asked once there is a conversation. A panel opens without it.
import { ChatError } from "./session.js";

const BUSY_TRIES = 6;
const BUSY_WAIT_MS = 400;

/** @type {(session: Session, messageId: string, rating: Rating | null, comment?: string) => Promise<void>} */
export async function rate(session, messageId, rating, comment) {
  const path = `/messages/${encodeURIComponent(messageId)}/feedback`;
  await session.request("POST", path, () => ({ rating, comment }));
}

/** @type {(session: Session, recording: Blob, signal: AbortSignal) => Promise<VoiceReply>} */
export async function sendRecording(session, recording, signal) {
  const build = (/** @type {string} */ id) => {
    const form = new FormData();
    form.set("session_id", id);
    form.set("audio", recording, "recording.webm");
    return form;
  };
  // Not tried again while the last turn ends: each try is listened to and counted.
  return (await session.request("POST", "/chat/audio", build, signal)).json();
}

/** @type {(session: Session, text: string, signal: AbortSignal) => Promise<ArrayBuffer>} */
export async function speak(session, text, signal) {
  return (await ask(session, "/chat/tts", () => ({ text }), signal)).arrayBuffer();
}

// Asks again for a moment while the last turn still ends.
/** @type {(session: Session, path: string, build: BuildBody, signal: AbortSignal) => Promise<Response>} */
export async function ask(session, path, build, signal) {
  for (let left = BUSY_TRIES;; left -= 1) {
    try {
      return await session.request("POST", path, build, signal);
    } catch (error) {
      const isBusy = error instanceof ChatError && error.kind === "busy";
      if (!isBusy || left === 0 || signal.aborted) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, BUSY_WAIT_MS);
      });
    }
  }
}
