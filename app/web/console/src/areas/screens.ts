// The screens of the console, one row each. Adding a screen is adding a row and a folder.
import {
  Bot,
  ChartColumn,
  House,
  KeyRound,
  Library,
  type LucideIcon,
  MessagesSquare,
  Settings,
  Users,
  Wrench,
} from "lucide-preact";
import type { ComponentType } from "preact";
import { lazy } from "preact-iso";

import type { Catalog, Part } from "../texts";
import { loadScreen } from "../shell/parts";

export interface Screen {
  key: keyof Catalog["rail"];
  path: string;
  icon: LucideIcon;
  group: "" | "build" | "look" | "manage";
  // Users without any of these permissions do not see it; an empty list is for everybody.
  needs: string[];
  // The second key of the shortcut that goes there, after "g".
  shortcut: string;
  component: LazyScreen;
}

type LazyScreen = ComponentType & { preload: () => Promise<unknown> };

function part(
  load: () => Promise<{ default: ComponentType }>,
  ...texts: Part[]
): LazyScreen {
  return lazy(() => loadScreen(load, texts)) as LazyScreen;
}

export const SCREENS: Screen[] = [
  {
    key: "home",
    path: "/",
    icon: House,
    group: "",
    needs: [],
    shortcut: "h",
    component: part(() => import("./home"), "home", "usage"),
  },
  {
    key: "agents",
    path: "/agents",
    icon: Bot,
    group: "build",
    needs: ["agents:read"],
    shortcut: "a",
    component: part(() => import("./agents"), "agents", "turns"),
  },
  {
    key: "knowledge",
    path: "/knowledge",
    icon: Library,
    group: "build",
    needs: ["agents:write"],
    shortcut: "k",
    component: part(() => import("./knowledge"), "knowledge"),
  },
  {
    key: "tools",
    path: "/tools",
    icon: Wrench,
    group: "build",
    needs: ["tools:read"],
    shortcut: "t",
    component: part(() => import("./tools"), "tools"),
  },
  {
    key: "credentials",
    path: "/credentials",
    icon: KeyRound,
    group: "build",
    needs: ["credentials:read"],
    shortcut: "v",
    component: part(() => import("./credentials"), "credentials"),
  },
  {
    key: "conversations",
    path: "/conversations",
    icon: MessagesSquare,
    group: "look",
    needs: [],
    shortcut: "c",
    component: part(() => import("./conversations"), "conversations", "turns"),
  },
  {
    key: "usage",
    path: "/usage",
    icon: ChartColumn,
    group: "look",
    needs: ["usage:read"],
    shortcut: "u",
    component: part(() => import("./usage"), "usage"),
  },
  {
    key: "people",
    path: "/people",
    icon: Users,
    group: "manage",
    needs: [],
    shortcut: "p",
    component: part(() => import("./people"), "people", "accounts"),
  },
  {
    key: "settings",
    path: "/settings",
    icon: Settings,
    group: "manage",
    needs: ["models:read", "admin:keys", "work:read", "settings:read"],
    shortcut: "s",
    component: part(() => import("./settings"), "settings"),
  },
];

// Its scripts run while the session is fetched. What fails here fails again when it is shown.
export function preloadScreen(path: string): void {
  const name = `/${path.split("/")[1] ?? ""}`;
  const screen = SCREENS.find((it) => it.path === name);
  screen?.component.preload().catch(() => null);
}
