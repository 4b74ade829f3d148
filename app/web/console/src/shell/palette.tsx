// Ctrl-K: goes to a screen or a record, or starts an action, by its name.
import { signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useRead } from "../api/queries";
import { may, signOut } from "../api/session";
import { BASE, href } from "../base";
import { t } from "../texts";
import { useDelayed } from "../ui/state";
import { visibleScreens } from "./rail";
import { theme } from "./theme";

export const isPaletteOpen = signal(false);

interface Entry {
  group: string;
  label: string;
  run: () => void;
}

export function Palette() {
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const entries = useEntries(text);
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  const close = () => (isPaletteOpen.value = false);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    entry.run();
  };
  const handleKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setActive((active + step + entries.length) % Math.max(1, entries.length));
    }
    if (event.key === "Enter") {
      event.preventDefault();
      choose(entries[active]);
    }
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label={t().palette.title}
      onCancel={close}
      onMouseDown={(event) => event.target === dialog.current && close()}
    >
      <input
        type="text"
        role="combobox"
        dir="auto"
        aria-label={t().palette.title}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={entries.length ? `${id}-${active}` : undefined}
        placeholder={t().palette.hint}
        autoFocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={handleKey}
      />
      <div role="listbox" id={`${id}-list`} aria-label={t().palette.title}>
        {entries.length === 0 && <p class="soft">{t().palette.nothing}</p>}
        {entries.map((entry, index) => (
          <div key={entry.group + entry.label}>
            {entry.group !== entries[index - 1]?.group && (
              <p class="palette-group" aria-hidden="true">{entry.group}</p>
            )}
            <div
              role="option"
              id={`${id}-${index}`}
              class="palette-entry"
              dir="auto"
              aria-selected={index === active}
              onMouseMove={() => setActive(index)}
              onClick={() => choose(entry)}
            >
              {entry.label}
            </div>
          </div>
        ))}
      </div>
    </dialog>
  );
}

function useEntries(text: string): Entry[] {
  const { route } = useLocation();
  const wanted = text.trim().toLowerCase();
  const search = useDelayed(text.trim(), 150);
  const agents = useRead(
    "/api/v1/agents",
    { query: { per_page: 8, ...(search ? { search } : {}) } },
    { enabled: may("agents:read") },
  );
  const screens = visibleScreens().map(({ key, path }) => ({
    group: t().palette.screens,
    label: t().rail[key] as string,
    run: () => route(href(path)),
  }));
  const actions = [
    ...(may("agents:write")
      ? [{
        group: t().palette.actions,
        label: t().common.newAgent,
        run: () => route(href("/agents", { new: "1" })),
      }]
      : []),
    {
      group: t().palette.actions,
      label: t().rail.reference,
      run: () => void open(`${BASE}/docs`, "_blank"),
    },
    {
      group: t().palette.actions,
      label: `${t().rail.theme}: ${t().rail.themes[theme.value === "dark" ? "light" : "dark"]}`,
      run: () => (theme.value = theme.value === "dark" ? "light" : "dark"),
    },
    { group: t().palette.actions, label: t().rail.signOut, run: () => void signOut() },
  ];
  const records = (agents.data?.data ?? []).map(({ id, name }) => ({
    group: t().palette.agents,
    label: name,
    run: () => route(href(`/agents/${id}`)),
  }));
  return [...screens, ...records, ...actions].filter(({ label }) =>
    label.toLowerCase().includes(wanted)
  );
}
