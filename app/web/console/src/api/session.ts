// Who is signed in. The access token is in memory only; the refresh token is in a cookie that no
// script can read.
import { computed, signal } from "@preact/signals";

import { BASE } from "../base";
import { Problem, problemOf } from "./problem";
import type { Schemas } from "./types";

export type Session = Schemas["ConsoleSession"];
export type MfaRequired = Schemas["MfaRequired"];

const PATH = `${BASE}/auth/console/session`;
const EARLY_MS = 60_000;
const LOCK = "parley-session";
const CHANNEL = "parley-session";

// undefined: not known yet; null: signed out.
export const session = signal<Session | null | undefined>(undefined);
// Until the address is verified, the server permits nothing beyond the own account.
export const permissions = computed(() =>
  new Set(session.value?.user.email_verified ? session.value.permissions : [])
);
// Whether somebody who was signed in has to sign in again; the page below stays as it is.
export const hasExpired = signal(false);
// The tenant that a super_admin looks at; null: all of them.
export const tenant = signal<string | null>(sessionStorage.getItem("tenant"));

let expiresAt = 0;
let refreshing: Promise<boolean> | null = null;
let resume: (() => void)[] = [];
const channel = new BroadcastChannel(CHANNEL);

export function may(permission: string): boolean {
  return permissions.value.has(permission);
}

export function isSuperAdmin(): boolean {
  return session.value?.user.role === "super_admin";
}

export function selectTenant(id: string | null): void {
  tenant.value = id;
  if (id) sessionStorage.setItem("tenant", id);
  else sessionStorage.removeItem("tenant");
}

// What the user has changed in the own profile, until the session is refreshed.
export function updateUser(changes: Partial<Session["user"]>): void {
  const now = session.peek();
  if (now) session.value = { ...now, user: { ...now.user, ...changes } };
}

export async function signIn(email: string, password: string): Promise<MfaRequired | null> {
  const answer = await send("POST", "", { email, password });
  if ("mfa_token" in answer) return answer;
  begin(answer);
  return null;
}

export async function signInWithCode(token: string, code: string): Promise<void> {
  begin(await send("POST", "/mfa", { mfa_token: token, code }) as Session);
}

export async function signOut(): Promise<void> {
  await request("DELETE", "");
  forget();
  channel.postMessage("signed-out");
}

// Returns a token that is valid for a while, or null when nobody is signed in.
export async function getToken(): Promise<string | null> {
  if (session.value && Date.now() > expiresAt - EARLY_MS) await refresh();
  return session.value?.access_token ?? null;
}

// Gets a new token. Returns false when the session has ended. One tab refreshes at a time, because
// each refresh token works once.
export function refresh(): Promise<boolean> {
  refreshing ??= locked(renew).finally(() => (refreshing = null));
  return refreshing;
}

// Resolves when the user has signed in again.
export function waitForSignIn(): Promise<void> {
  hasExpired.value = true;
  return new Promise((resolve) => resume.push(resolve));
}

channel.onmessage = () => {
  if (session.value) location.reload();
};

async function renew(): Promise<boolean> {
  const response = await request("POST", "/refresh");
  if (response.ok) {
    begin(await response.json());
    return true;
  }
  if (response.status !== 401) throw await problemOf(response);
  if (session.value === undefined) session.value = null;
  return false;
}

function begin(next: Session): void {
  const before = session.peek();
  if (before && before.user.id !== next.user.id) {
    // Nothing of the other user may stay on the page.
    location.reload();
    return;
  }
  expiresAt = Date.now() + next.expires_in * 1000;
  session.value = next;
  hasExpired.value = false;
  for (const go of resume.splice(0)) go();
}

function forget(): void {
  selectTenant(null);
  session.value = null;
  resume = [];
}

function locked(action: () => Promise<boolean>): Promise<boolean> {
  // Browsers offer locks to pages with https or on this machine.
  return navigator.locks ? navigator.locks.request(LOCK, action) : action();
}

async function send(method: string, path: string, body: unknown): Promise<Session | MfaRequired> {
  const response = await request(method, path, body);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

async function request(method: string, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { "x-parley-console": "1" };
  if (body !== undefined) headers["content-type"] = "application/json";
  try {
    return await fetch(PATH + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
  } catch (error) {
    throw new Problem(0, "network", String(error), {}, null);
  }
}
