// The tabs of an agent beside its behaviour, one row each.
import type { ComponentType } from "preact";

import type { Catalog } from "../../texts";
import type { Agent } from "./state";
import { Embedding } from "./tabs/embedding";
import { History } from "./tabs/history";
import { Knowledge } from "./tabs/knowledge";
import { Logging } from "./tabs/logging";
import { SubAgents } from "./tabs/sub_agents";
import { Tools } from "./tabs/tools";
import { Versions } from "./tabs/versions";
import { Voice } from "./tabs/voice";

export interface TabProps {
  agent: Agent;
  onChanged: () => unknown;
}

interface TabRow {
  key: keyof Catalog["agents"]["tabs"];
  component: ComponentType<TabProps>;
}

export const TABS: TabRow[] = [
  { key: "knowledge", component: Knowledge },
  { key: "tools", component: Tools },
  { key: "subAgents", component: SubAgents },
  { key: "embedding", component: Embedding },
  { key: "voice", component: Voice },
  { key: "logging", component: Logging },
  { key: "versions", component: Versions },
  { key: "history", component: History },
];
