import { ChevronRight, Keyboard, Languages, Moon, Search, Sun, SunMoon } from "lucide-preact";

import { session } from "../api/session";
import { href } from "../base";
import { LANGUAGES, t } from "../texts";
import { IconButton } from "../ui/button";
import { Menu } from "../ui/menu";
import { crumbs } from "../ui/page";
import { saveLanguage } from "./language";
import { isPaletteOpen } from "./palette";
import { RailButton } from "./rail";
import { areShortcutsShown } from "./shortcuts";
import { TenantMenu } from "./tenant";
import { theme, THEMES } from "./theme";

const ICONS = { system: SunMoon, light: Sun, dark: Moon };

export function Top() {
  return (
    <header class="top">
      <RailButton />
      <nav class="crumbs" aria-label={t().common.back}>
        <ol>
          {crumbs.value.map(({ label, to }) => (
            <li key={to}>
              <a href={href(to)} dir="auto">{label}</a>
              <ChevronRight aria-hidden="true" />
            </li>
          ))}
        </ol>
      </nav>
      {session.value && <TenantMenu />}
      <button
        type="button"
        class="palette-button"
        aria-label={t().palette.open}
        onClick={() => (isPaletteOpen.value = true)}
      >
        <Search aria-hidden="true" />
        <span>{t().palette.open}</span>
        <kbd>Ctrl K</kbd>
      </button>
      <IconButton
        icon={Keyboard}
        label={t().shortcuts.title}
        class="wide-only"
        onClick={() => (areShortcutsShown.value = true)}
      />
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
    </header>
  );
}
