import { signal } from "@preact/signals";
import { useLocation } from "preact-iso";

import { href } from "../base";
import { t } from "../texts";
import { Dialog } from "../ui/dialog";
import { useShortcut } from "../ui/state";
import { type Screen } from "../areas/screens";
import { isPaletteOpen } from "./palette";
import { visibleScreens } from "./rail";

export const areShortcutsShown = signal(false);

export function Shortcuts() {
  const texts = t().shortcuts;
  useShortcut("?", () => (areShortcutsShown.value = true));
  useShortcut("mod+k", () => (isPaletteOpen.value = !isPaletteOpen.value));
  useShortcut("/", () => document.querySelector<HTMLElement>("[data-search]")?.focus());
  const screens = visibleScreens();
  const rows: [string[], string][] = [
    [["Ctrl", "K"], texts.palette],
    [["?"], texts.help],
    [["/"], texts.search],
    [["Ctrl", "S"], texts.save],
    [["↑", "↓"], texts.rows],
    [["Enter"], texts.open],
    [["Esc"], texts.close],
    [["Ctrl", "M"], texts.indent],
    ...screens.map(({ key, shortcut }): [string[], string] => [
      ["g", shortcut],
      texts.go(t().rail[key] as string),
    ]),
  ];
  return (
    <>
      {screens.map((screen) => <GoTo key={screen.key} screen={screen} />)}
      {areShortcutsShown.value && (
        <Dialog title={texts.title} onClose={() => (areShortcutsShown.value = false)}>
          <dl class="shortcuts">
            {rows.map(([keys, label]) => (
              <div key={label}>
                <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
                <dd>{label}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

function GoTo({ screen }: { screen: Screen }) {
  const { route } = useLocation();
  useShortcut(`g ${screen.shortcut}`, () => route(href(screen.path)));
  return null;
}
