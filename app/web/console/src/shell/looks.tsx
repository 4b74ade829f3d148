// The settings of this browser: language and theme.
import { Languages, Moon, Sun, SunMoon } from "lucide-preact";

import { LANGUAGES, t } from "../texts";
import { Menu } from "../ui/menu";
import { saveLanguage } from "./language";
import { theme, THEMES } from "./theme";

const ICONS = { system: SunMoon, light: Sun, dark: Moon };

export function LooksMenus() {
  return (
    <>
      <Menu
        label={t().rail.language}
        icon={Languages}
        items={Object.entries(LANGUAGES).map(([code, label]) => ({
          label,
          onSelect: () => saveLanguage(code),
        }))}
      />
      <Menu
        label={t().rail.theme}
        icon={ICONS[theme.value]}
        items={THEMES.map((name) => ({
          label: t().rail.themes[name],
          icon: ICONS[name],
          onSelect: () => (theme.value = name),
        }))}
      />
    </>
  );
}
