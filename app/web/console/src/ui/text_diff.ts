// Which lines differ between two texts.
export interface Line {
  kind: "same" | "removed" | "added";
  text: string;
}

// Above this, lines in the middle count as replaced: the exact way takes time for each pair.
const MAX_PAIRS = 1_000_000;

export function diffLines(before: string, after: string): Line[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let start = 0;
  let end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  while (
    end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)
  ) end += 1;
  const middle = diffMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return [
    ...mark("same", old.slice(0, start)),
    ...middle,
    ...mark("same", end ? old.slice(-end) : []),
  ];
}

function mark(kind: Line["kind"], lines: string[]): Line[] {
  return lines.map((text) => ({ kind, text }));
}

function diffMiddle(old: string[], now: string[]): Line[] {
  if (old.length * now.length > MAX_PAIRS) return [...mark("removed", old), ...mark("added", now)];
  const lengths = measureCommon(old, now);
  const lines: Line[] = [];
  let left = 0;
  let right = 0;
  while (left < old.length && right < now.length) {
    if (old[left] === now[right]) {
      lines.push({ kind: "same", text: old[left] });
      left += 1;
      right += 1;
    } else if (lengths[left + 1][right] >= lengths[left][right + 1]) {
      lines.push({ kind: "removed", text: old[left++] });
    } else {
      lines.push({ kind: "added", text: now[right++] });
    }
  }
  return [...lines, ...mark("removed", old.slice(left)), ...mark("added", now.slice(right))];
}

// The length of the longest common subsequence of each pair of rests.
function measureCommon(old: string[], now: string[]): Uint32Array[] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let left = old.length - 1; left >= 0; left -= 1) {
    for (let right = now.length - 1; right >= 0; right -= 1) {
      lengths[left][right] = old[left] === now[right]
        ? lengths[left + 1][right + 1] + 1
        : Math.max(lengths[left + 1][right], lengths[left][right + 1]);
    }
  }
  return lengths;
}
