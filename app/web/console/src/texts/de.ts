import type { Catalog } from ".";
import { en } from "./en";

export const de: Catalog = { ...en };
