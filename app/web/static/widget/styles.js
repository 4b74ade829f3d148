// Styles of a shadow root. They are constructed in the script, which no policy of the page forbids.

/** @type {(shadow: ShadowRoot, addresses: URL[]) => Promise<void>} */
export async function adoptStyles(shadow, addresses) {
  const sheets = await Promise.all(addresses.map(loadSheet));
  shadow.adoptedStyleSheets = [...shadow.adoptedStyleSheets, ...sheets];
}

/** @type {(address: URL) => Promise<CSSStyleSheet>} */
async function loadSheet(address) {
  const response = await fetch(address, { credentials: "omit" });
  if (!response.ok) throw new Error(`${address} answered ${response.status}`);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(await response.text());
  return sheet;
}
