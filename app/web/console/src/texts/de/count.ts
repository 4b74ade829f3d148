export const count = (number: number, one: string, many: string): string =>
  `${number.toLocaleString("de")} ${number === 1 ? one : many}`;
