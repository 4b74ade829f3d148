// Sends a file and says how much of it is on its way, which fetch does not.
import { toError } from "./session.js";

// `onPart` gets the part of the file that has been sent.
/** @type {(session: Session, file: File, signal: AbortSignal, onPart: (part: number) => void) => Promise<Attachment>} */
export async function sendFile(session, file, signal, onPart) {
  const form = new FormData();
  form.set("file", file, file.name);
  await session.ensureToken();
  signal.throwIfAborted();
  const send = () => post(`${session.path}/attachments`, session.token, form, signal, onPart);
  let response = await send();
  if (response.status === 401) {
    // An expired token.
    signal.throwIfAborted();
    session.token = null;
    await session.ensureToken();
    signal.throwIfAborted();
    response = await send();
  }
  if (!response.ok) throw await toError(response);
  return response.json();
}

/**
 * @param {string} address
 * @param {string | null} token
 * @param {FormData} form
 * @param {AbortSignal} signal
 * @param {(part: number) => void} onPart
 * @returns {Promise<Response>}
 */
function post(address, token, form, signal, onPart) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.setRequestHeader("authorization", `Bearer ${token}`);
    request.upload.addEventListener("progress", ({ loaded, total }) => onPart(loaded / total));
    request.upload.addEventListener("load", () => onPart(1));
    request.addEventListener("load", () => {
      resolve(new Response(request.responseText, { status: request.status }));
    });
    for (const name of ["error", "abort"]) {
      request.addEventListener(name, () => reject(new Error("The file was not sent.")));
    }
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(form);
  });
}
