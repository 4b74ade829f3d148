// Uploads that say how far they are, which fetch does not.
import { addressOf } from "./client";
import { Problem, problemOf } from "./problem";
import { getToken, refresh, session, tenant, waitForSignIn } from "./session";

// Sends a form and returns the answer. A session that has ended is no failure: the form is sent
// again once the user has signed in.
export async function upload<T>(
  path: string,
  names: Record<string, string>,
  form: FormData,
  onProgress: (share: number) => void,
): Promise<T> {
  for (let attempt = 0;; attempt += 1) {
    const response = await sendForm(addressOf(path, { path: names }), form, onProgress);
    if (response.ok) return await response.json() as T;
    if (response.status !== 401 || !session.peek() || attempt > 1) throw await problemOf(response);
    if (attempt === 1 || !await refresh()) await waitForSignIn();
  }
}

async function sendForm(
  address: string,
  form: FormData,
  onProgress: (share: number) => void,
): Promise<Response> {
  const token = await getToken();
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.setRequestHeader("accept", "application/json");
    if (token) request.setRequestHeader("authorization", `Bearer ${token}`);
    if (tenant.peek()) request.setRequestHeader("x-tenant-id", tenant.peek() ?? "");
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => resolve(responseOf(request));
    request.onerror = () => reject(new Problem(0, "network", "The upload failed", {}, null));
    request.send(form);
  });
}

function responseOf(request: XMLHttpRequest): Response {
  const id = request.getResponseHeader("x-request-id");
  return new Response(request.responseText, {
    status: request.status,
    statusText: request.statusText,
    headers: id ? { "x-request-id": id } : {},
  });
}
