import { Ellipsis, Power, PowerOff, Trash2 } from "lucide-preact";
import { useLocation } from "preact-iso";

import { api, tagOf, toCurl } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { CopyButton, CopyText } from "../../ui/copy";
import { RecordHistory } from "../../ui/history";
import { Menu, type MenuItem } from "../../ui/menu";
import { Facts, Page } from "../../ui/page";
import { Ago, type Tab, Tabs } from "../../ui/small";
import { Loaded, Problem } from "../../ui/states";
import { ConnectionTest } from "./connection_test";
import { deleteTool } from "./deletion";
import { fieldLabels, ToolForm } from "./editor";
import { Executions } from "./executions";
import { ToolState } from "./list";
import { RunTool } from "./run";
import { Statistics } from "./statistics";
import type { Stored } from "./values";

const PATH = "/v1/tools/{tool_id}";

export function ToolScreen({ id }: { id: string }) {
  const query = useRead(PATH, { path: { tool_id: id } });
  const tool = query.data?.data;
  return (
    <Page
      title={tool?.name ?? t().tools.tool}
      parents={[{ label: t().rail.tools, to: "/tools" }]}
      beside={tool && <ToolState isEnabled={tool.is_enabled} />}
      actions={query.data && <Actions record={query.data} />}
    >
      <Loaded query={query}>{(record) => <Content record={record} />}</Loaded>
    </Page>
  );
}

function Content({ record }: { record: Stored }) {
  const { id, tool_type, description, slug, last_used_at } = record.data;
  const texts = t().tools;
  const all: (Tab | false)[] = [
    may("tools:write") && ["settings", texts.settings],
    may("tools:execute") && ["run", texts.run],
    ["executions", texts.executions],
    ["statistics", texts.statistics],
    ["history", t().history.title],
  ];
  return (
    <>
      {!may("tools:write") && (
        <Facts
          rows={[
            [texts.type, t().toolTypes[tool_type]],
            [
              t().common.description,
              <span key="about" dir="auto">{description || "–"}</span>,
            ],
            [texts.slug, <CopyText key="slug" text={slug} />],
            [texts.lastUsed, <Ago key="used" at={last_used_at} />],
          ]}
        />
      )}
      <Tabs
        label={texts.tool}
        tabs={all.filter((tab): tab is Tab => Boolean(tab))}
      >
        {(tab) => {
          if (tab === "settings") return <ToolForm key={id} record={record} />;
          if (tab === "run") return <RunTool tool={record.data} />;
          if (tab === "history") {
            return <RecordHistory kind="tool" recordId={id} labels={fieldLabels()} />;
          }
          if (tab === "statistics") return <Statistics id={id} />;
          return <Executions id={id} />;
        }}
      </Tabs>
    </>
  );
}

function Actions({ record }: { record: Stored }) {
  const { route } = useLocation();
  const { id, name, is_enabled, tool_type } = record.data;
  const texts = t().tools;
  const path = { tool_id: id };
  const enable = useChange(
    (isEnabled: boolean) =>
      api.put(PATH, { path, body: { is_enabled: isEnabled } }, {
        ifMatch: tagOf(record),
      }),
    [PATH, "/v1/tools"],
  );
  const items: (MenuItem | false)[] = [
    may("tools:write") && {
      label: is_enabled ? texts.disable : texts.enable,
      icon: is_enabled ? PowerOff : Power,
      onSelect: () => enable.mutate(!is_enabled),
    },
    may("tools:delete") && {
      label: texts.delete,
      icon: Trash2,
      isDanger: true,
      onSelect: () => {
        deleteTool(id, name);
        route(href("/tools"));
      },
    },
  ];
  const shown = items.filter((item): item is MenuItem => Boolean(item));
  return (
    <>
      <Problem error={enable.error} />
      <CopyText text={id} />
      {may("tools:execute") && ["custom", "database"].includes(tool_type) && (
        <ConnectionTest tool={record.data} />
      )}
      <CopyButton
        text={toCurl("GET", PATH, { path })}
        label={t().common.copyCurl}
      />
      {shown.length > 0 && <Menu label={t().common.actions} icon={Ellipsis} items={shown} />}
    </>
  );
}
