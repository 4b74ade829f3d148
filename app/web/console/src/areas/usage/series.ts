// Usage over time: what the address asks for, and how measures and groups are written.
import type { Query, Schemas } from "../../api/types";
import { language, t } from "../../texts";
import { momentOf } from "../../ui/date_filter";
import { formatCompact, formatCost, formatNumber } from "../../ui/format";

export type Series = Schemas["UsageSeries"];
export type Group = Schemas["UsageGroup"];
export type Sums = Schemas["SeriesSums"];
type SeriesQuery = Query<"/api/v1/usage/series">;

export const PATH = "/api/v1/usage/series";
export const PERIODS = ["24h", "7d", "30d", "90d"] as const;
export const GROUPS = ["agent", "model", "user", "key", "source"] as const;
export const MEASURES = [
  "cost_usd",
  "total_tokens",
  "turns",
  "requests",
  "conversations",
] as const;

export type Measure = (typeof MEASURES)[number];
type Filters = Record<string, string | undefined>;

function oneOf<T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((known) => known === value);
}

export function measureOf(filters: Filters): Measure {
  return oneOf(MEASURES, filters.measure) ?? "cost_usd";
}

export function isCustom(filters: Filters): boolean {
  return filters.period === "custom";
}

// Names that the API does not know, in an address that somebody has typed, are left out.
export function queryOf(filters: Filters): SeriesQuery {
  const from = momentOf(filters.from);
  const to = momentOf(filters.to, true);
  const time = isCustom(filters) && (from || to)
    ? { from, to }
    : { period: oneOf(PERIODS, filters.period) ?? "30d" } as const;
  return {
    ...time,
    group_by: oneOf(GROUPS, filters.group) ?? "none",
    measure: measureOf(filters),
    agent_id: filters.agent,
    model: filters.model,
  };
}

export function format(measure: Measure, value: number): string {
  return measure === "cost_usd" ? formatCost(value) : formatNumber(value);
}

export function formatShort(measure: Measure, value: number): string {
  return measure === "cost_usd" ? formatCost(value) : formatCompact(value);
}

export function nameOf(group: Group, by: Series["group_by"]): string {
  const texts = t().usage;
  if (by === "none") return texts.total;
  if (by === "source" && group.id) {
    return texts.sources[group.id as keyof typeof texts.sources] ?? group.id;
  }
  if (group.id === null) return texts.nobody[by as keyof typeof texts.nobody] ?? texts.without;
  const name = group.name ?? (by === "user" && group.is_deleted ? texts.deletedUser : group.id);
  return group.is_deleted && group.name ? texts.deleted(name) : name;
}

export interface Row {
  id: string | null;
  name: string;
  // All that `top` leaves out.
  isOther: boolean;
  totals: Sums;
  values: Group["values"];
}

export function rowsOf({ groups, group_by, other }: Series): Row[] {
  const rows = groups.map((group) => ({
    id: group.id,
    name: nameOf(group, group_by),
    isOther: false,
    totals: group.totals,
    values: group.values,
  }));
  return other ? [...rows, { id: null, name: t().usage.other, isOther: true, ...other }] : rows;
}

// Days and months are those of UTC, hours those of this browser.
export function bucketNames({ buckets, interval }: Series, isShort: boolean): string[] {
  const options: Intl.DateTimeFormatOptions = interval === "hour"
    ? isShort ? { hour: "numeric" } : { dateStyle: "medium", timeStyle: "short" }
    : interval === "month"
    ? { month: isShort ? "short" : "long", year: "numeric", timeZone: "UTC" }
    : isShort
    ? { day: "numeric", month: "short", timeZone: "UTC" }
    : { dateStyle: "medium", timeZone: "UTC" };
  const formatter = new Intl.DateTimeFormat(language.value, options);
  return buckets.map((bucket) => formatter.format(new Date(bucket)));
}
