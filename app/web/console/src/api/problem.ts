// What went wrong with a request, as the server or the network says.
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown>,
    readonly requestId: string | null,
  ) {
    super(message);
  }

  // The messages of a 422, by the names of the fields.
  get fields(): Record<string, string> {
    if (this.status !== 422) return {};
    const texts = Object.entries(this.details).filter((pair): pair is [string, string] =>
      typeof pair[1] === "string"
    );
    return Object.fromEntries(texts);
  }

  get isNetwork(): boolean {
    return this.status === 0;
  }
}

interface Envelope {
  error?: { code?: string; message?: string; details?: Record<string, unknown> | null };
}

export async function problemOf(response: Response): Promise<Problem> {
  const { error = {} } = await response.json().catch(() => ({})) as Envelope;
  return new Problem(
    response.status,
    error.code ?? `http_${response.status}`,
    error.message || response.statusText || `HTTP ${response.status}`,
    error.details ?? {},
    response.headers.get("x-request-id"),
  );
}

export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Problem(0, "network", message, {}, null);
}
