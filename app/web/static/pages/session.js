// The access token of the user, as long as this tab is open.
const KEY = "parley-token";

/** @type {() => string | null} */
export function readToken() {
  return sessionStorage.getItem(KEY);
}

/** @type {(token: string) => void} */
export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}
