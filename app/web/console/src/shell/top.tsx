import { ChevronRight, Keyboard, Search } from "lucide-preact";

import { session } from "../api/session";
import { href } from "../base";
import { t } from "../texts";
import { IconButton } from "../ui/button";
import { crumbs } from "../ui/page";
import { LooksMenus } from "./looks";
import { isPaletteOpen } from "./palette";
import { RailButton } from "./rail";
import { areShortcutsShown } from "./shortcuts";
import { TenantMenu } from "./tenant";

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
      <LooksMenus />
    </header>
  );
}
