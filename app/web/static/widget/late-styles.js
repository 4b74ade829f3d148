// Styles that a panel opens without. A shadow root gets each sheet once.
import { adoptStyles } from "./styles.js";

/** @type {WeakMap<ShadowRoot, Map<string, Promise<void>>>} */
const styled = new WeakMap();

// What they belong to is shown without them too. A sheet that could not be loaded is tried again the
// next time.
/** @type {(shadow: ShadowRoot, address: URL) => Promise<void>} */
export function addStyles(shadow, address) {
  const sheets = styled.get(shadow) ?? new Map();
  styled.set(shadow, sheets);
  const loading = sheets.get(address.href) ??
    adoptStyles(shadow, [address]).catch(() => void sheets.delete(address.href));
  sheets.set(address.href, loading);
  return loading;
}
