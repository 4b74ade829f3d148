import type { ComponentType } from "preact";

import { loadPart } from "../load_part";
import { loadTexts, type Part } from "../texts";

type Module = { default: ComponentType };

// A screen and the texts that it shows. One that cannot be loaded is a screen that fails, because
// the router would show nothing.
export async function loadScreen(load: () => Promise<Module>, texts: Part[]): Promise<Module> {
  try {
    return await loadPart(async () => (await Promise.all([load(), loadTexts(texts)]))[0]);
  } catch (error) {
    return {
      default: () => {
        throw error;
      },
    };
  }
}
