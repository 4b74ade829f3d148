// Reads the server-sent events of a response, as fetch returns it.
import { required } from "./dom.js";

// Yields { event, data } for each event, with the data decoded from JSON.
/** @type {<Data>(response: Response) => AsyncGenerator<ServerEvent<Data>>} */
export async function* readEvents(response) {
  const reader = required(response.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    // Also when the caller stops reading: the server then stops writing.
    reader.cancel().catch(() => {});
  }
}

// Returns null for a comment, which only keeps the connection open.
/** @type {<Data>(block: string) => ServerEvent<Data> | null} */
function parseEvent(block) {
  let event = "message";
  const lines = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    if (line.startsWith("data:")) lines.push(line.slice(5));
  }
  return lines.length ? { event, data: JSON.parse(lines.join("\n")) } : null;
}
