// Types of app/web/static/pages: what the server sends.

declare global {
  interface ApiError {
    code: string;
    message: string;
    details?: Record<string, string>;
  }

  // What app/domain/identity/accounts/schemas.py describes.
  interface InvitationLink {
    email: string;
    inviter: string | null;
    tenant_name: string;
    role: string;
    state: "open" | "used" | "expired" | "superseded" | "revoked";
  }

  // Why a link does not work, and what to do.
  interface LinkEnd {
    title: string;
    text: string;
    link?: { href: string; text: string };
  }

  // What a form shows, or why there is none.
  interface LinkView {
    email?: string;
    title?: string;
    about?: string;
    end?: LinkEnd;
  }

  type ApprovalDecision = "approved" | "rejected";

  interface ApprovalDetail {
    name: string;
    value: string;
  }

  // What app/domain/automation/approvals/schemas.py describes.
  interface LinkedApproval {
    title: string;
    message: string;
    workflow_name: string | null;
    started_by: string | null;
    details: ApprovalDetail[];
    status: "pending" | ApprovalDecision | "timed_out" | "cancelled";
    user_name: string;
    comment: string | null;
    decided_by: string | null;
    decided_at: string | null;
    expires_at: string | null;
  }

  interface Trace {
    data: TraceEvent[];
    spans: TraceSpan[];
    duration_ms: number;
  }

  interface TraceActor {
    type: string;
    id: string | null;
    name: string | null;
  }

  // Parts of an event or a span that are shown under headings of their own.
  interface TraceParts {
    input?: unknown;
    output?: unknown;
    error?: string;
    data?: unknown;
  }

  interface TraceEvent extends TraceParts {
    id: string;
    parent_id: string | null;
    type: string;
    actor: TraceActor;
    test: boolean;
    created_at: string;
  }

  interface TraceSpan extends TraceParts {
    id: string;
    parent_id: string | null;
    kind: string;
    name: string;
    status: string;
    started_at: string;
    duration_ms: number;
    waited_ms?: number;
    is_waiting?: boolean;
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
    waited: number;
    isWaiting: boolean;
    by: string;
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
