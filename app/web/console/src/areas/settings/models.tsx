import { Cpu } from "lucide-preact";

import { useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { SearchField } from "../../ui/field";
import { formatCost, formatNumber } from "../../ui/format";
import { useFilters } from "../../ui/state";
import { Empty, Loaded } from "../../ui/states";
import { type Column, Table } from "../../ui/table";
import { titleOf } from "./providers";

type Model = Schemas["ModelView"];

export function Models() {
  const [filters, setFilters] = useFilters();
  const query = useRead("/api/v1/models", { query: {} }, { staleTime: 60_000 });
  const texts = t().settings.models;
  const wanted = (filters.search ?? "").toLowerCase();
  return (
    <>
      <p class="about">{texts.about}</p>
      <Loaded query={query}>
        {({ data }) => {
          if (!data.length) {
            return (
              <Empty
                icon={Cpu}
                title={texts.emptyTitle}
                action={may("models:write") && (
                  <Button
                    kind="primary"
                    onClick={() => setFilters({ tab: "keys", new: "key" })}
                  >
                    {t().settings.keys.add}
                  </Button>
                )}
              >
                {texts.emptyAbout}
              </Empty>
            );
          }
          const shown = data.filter(({ id }) => id.toLowerCase().includes(wanted));
          return (
            <>
              <div class="filters">
                <SearchField
                  value={filters.search ?? ""}
                  onInput={(search) => setFilters({ search })}
                />
              </div>
              {shown.length
                ? (
                  <Table<Model>
                    label={t().settings.tabs.models}
                    rows={shown}
                    keyOf={({ id }) => id}
                    columns={columns()}
                  />
                )
                : (
                  <Empty
                    title={t().common.nothingFound}
                    action={
                      <Button onClick={() => setFilters({ search: undefined })}>
                        {t().common.clearFilters}
                      </Button>
                    }
                  />
                )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function columns(): Column<Model>[] {
  const texts = t().settings.models;
  return [
    { key: "id", label: texts.model, cell: ({ id }) => id },
    {
      key: "provider",
      label: t().settings.keys.provider,
      width: "144px",
      isSecondary: true,
      cell: ({ provider }) => provider === "local" ? texts.local : titleOf(provider),
    },
    {
      key: "context",
      label: texts.context,
      width: "128px",
      isNumber: true,
      isSecondary: true,
      cell: ({ context_window }) => context_window === null ? "–" : formatNumber(context_window),
    },
    {
      key: "input",
      label: texts.input,
      width: "112px",
      isNumber: true,
      isSecondary: true,
      cell: ({ input_cost_per_million: cost }) => cost === null ? "–" : formatCost(cost),
    },
    {
      key: "output",
      label: texts.output,
      width: "112px",
      isNumber: true,
      isSecondary: true,
      cell: ({ output_cost_per_million: cost }) => cost === null ? "–" : formatCost(cost),
    },
    {
      key: "images",
      label: texts.images,
      width: "96px",
      isSecondary: true,
      cell: ({ takes_images: takes }) =>
        takes === null ? "–" : takes ? t().common.yes : t().common.no,
    },
  ];
}
