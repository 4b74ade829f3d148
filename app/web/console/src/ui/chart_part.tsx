// Loads the chart when a screen shows one; its library is large.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { loadPart } from "../load_part";
import type { ChartProps } from "./chart";
import { Failure } from "./states";

export function ChartPart(props: ChartProps) {
  const [Chart, setChart] = useState<ComponentType<ChartProps> | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    loadPart(() => import("./chart")).then((part) => setChart(() => part.default), setError);
  }, []);
  if (error) return <Failure error={error} />;
  return Chart ? <Chart {...props} /> : <div class="bone chart-area" aria-busy="true" />;
}
