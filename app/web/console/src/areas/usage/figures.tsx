import { Download } from "lucide-preact";

import { t } from "../../texts";
import { Button } from "../../ui/button";
import { saveFile, toCsv } from "../../ui/csv";
import { bucketNames, format, type Measure, type Row, rowsOf, type Series } from "./series";

// What the chart draws, for screen readers and for spreadsheets.
export function Figures({ series, measure }: { series: Series; measure: Measure }) {
  const texts = t().usage;
  const names = bucketNames(series, false);
  const rows = rowsOf(series);
  const save = () => saveFile("usage.csv", "text/csv", toCsv(table(series, rows, measure)));
  return (
    <details class="fold">
      <summary>{texts.figures}</summary>
      <div class="stack">
        <div class="actions">
          <Button icon={Download} onClick={save}>{texts.exportCsv}</Button>
        </div>
        <div class="matrix" tabIndex={0} role="region" aria-label={texts.figures}>
          <table aria-label={texts.figures}>
            <thead>
              <tr>
                <th scope="col">{texts.time}</th>
                {rows.map(({ name }, index) => (
                  <th key={index} scope="col" class="number" dir="auto">{name}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {names.map((name, index) => (
                <tr key={index}>
                  <th scope="row">{name}</th>
                  {rows.map(({ values }, position) => (
                    <td key={position} class="number">
                      {format(measure, values[measure]?.[index] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </details>
  );
}

function table({ buckets }: Series, rows: Row[], measure: Measure): (string | number)[][] {
  return [
    [t().usage.time, ...rows.map(({ name }) => name)],
    ...buckets.map((bucket, index) => [
      bucket,
      ...rows.map(({ values }) => values[measure]?.[index] ?? 0),
    ]),
  ];
}
