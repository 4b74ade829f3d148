// What the pages of the reference share.
import { signal } from "@preact/signals";

import { problemOf, toProblem } from "../api/problem";
import { BASE, DOCS } from "../base";
import { type ApiDocument, readDocument, type Reference } from "./document";

// The base address of the instance, as this browser reaches it.
export const BASE_URL = location.origin + BASE;

export const reference = signal<Reference | null>(null);
export const loadError = signal<unknown>(null);

export function pathOf(address = ""): string {
  return address ? `${DOCS}/${address}` : DOCS;
}

export async function loadReference(): Promise<void> {
  loadError.value = null;
  try {
    const response = await fetch(`${BASE}/openapi.json`);
    if (!response.ok) throw await problemOf(response);
    reference.value = readDocument(await response.json() as ApiDocument);
  } catch (error) {
    loadError.value = toProblem(error);
  }
}
