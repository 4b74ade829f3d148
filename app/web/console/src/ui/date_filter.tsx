// A day in a bar of filters: "2026-01-31" in the address, a moment for the API.
export function DateFilter(
  { label, value, onChange }: {
    label: string;
    value: string | undefined;
    onChange: (value: string | undefined) => void;
  },
) {
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        type="date"
        value={value ?? ""}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
    </label>
  );
}

// The beginning of a day of this browser's time zone, or of the day after it.
export function momentOf(
  day: string | undefined,
  isEnd = false,
): string | undefined {
  const [year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day ?? "")?.slice(1).map(Number) ?? [];
  if (year === undefined || month === undefined || date === undefined) {
    return undefined;
  }
  const moment = new Date(year, month - 1, date + (isEnd ? 1 : 0));
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}
