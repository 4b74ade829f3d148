// Types of app/web/static/pages: what the server sends.

declare global {
  interface Trace {
    data: TraceEvent[];
    spans: TraceSpan[];
    duration_ms: number;
  }

  interface TraceEvent {
    id: string;
    parent_id: string | null;
    type: string;
    test: boolean;
    created_at: string;
  }

  interface TraceSpan {
    id: string;
    parent_id: string | null;
    kind: string;
    name: string;
    status: string;
    started_at: string;
    duration_ms: number;
  }

  // An event or a span, as a line of the timeline.
  interface TraceRow {
    id: string;
    parent: string | null;
    kind: string;
    name: string;
    status: string;
    at: number;
    ms: number;
    more: TraceEvent | TraceSpan;
    depth: number;
  }

  interface Login {
    access_token: string;
    mfa_required: boolean;
    mfa_token: string;
  }
}

export {};
