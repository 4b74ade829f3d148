// Numbers, times and sizes, as the user's language writes them.
import { language } from "../texts";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const SIZES = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

export function formatNumber(value: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(language.value, options).format(value);
}

// Short enough for a tile: 12.3K.
export function formatCompact(value: number): string {
  return formatNumber(value, { notation: "compact", maximumFractionDigits: 1 });
}

// Costs of single turns are parts of a cent.
export function formatCost(dollars: number): string {
  const digits = dollars !== 0 && Math.abs(dollars) < 0.01 ? 5 : 2;
  return formatNumber(dollars, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  });
}

export function formatSize(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), SIZES.length - 1);
  return formatNumber(bytes / 1000 ** power, {
    style: "unit",
    unit: SIZES[power],
    // In short, English has "158 byte".
    unitDisplay: power ? "short" : "long",
    maximumFractionDigits: power ? 1 : 0,
  });
}

export function formatDuration(milliseconds: number): string {
  const [value, unit] = milliseconds < 1000
    ? [Math.round(milliseconds), "millisecond"]
    : milliseconds < 90_000
    ? [milliseconds / 1000, "second"]
    : [milliseconds / 60_000, "minute"];
  return formatNumber(value, {
    style: "unit",
    unit: unit as string,
    unitDisplay: "short",
    maximumFractionDigits: 1,
  });
}

export function formatPercent(share: number): string {
  return formatNumber(share, { style: "percent", maximumFractionDigits: 0 });
}

export function formatTime(iso: string): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "medium" })
    .format(new Date(iso));
}

export function formatDay(iso: string): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium" }).format(new Date(iso));
}

// "3 minutes ago"
export function formatAgo(iso: string, now = Date.now()): string {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language.value, { numeric: "auto" });
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return unit === "second"
    ? format.format(0, "second")
    : format.format(Math.round(seconds / size), unit);
}
