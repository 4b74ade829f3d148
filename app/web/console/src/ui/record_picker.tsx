// Chooses one of many records by its name: the server searches in all of them.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { t } from "../texts";
import { type Control, Field } from "./field";
import { placeBelow } from "./place";
import { type Kind, useRecordName, useRecords, type Wanted } from "./records";
import { useDelayed } from "./state";

type Choice = readonly [id: string, name: string];

interface PickerProps extends Omit<Wanted, "search"> {
  kind: Kind;
  // Empty while nothing is chosen.
  value: string;
  onChange: (id: string) => void;
  // Stands for nothing; without it, something stays chosen.
  none?: string | undefined;
}

export function RecordField(
  { label, hint, error, isOptional, ...picker }: PickerProps & {
    label: string;
    hint?: ComponentChildren;
    error?: string | undefined;
    isOptional?: boolean;
  },
) {
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional ?? false}>
      {(control) => <Picker {...picker} control={control} />}
    </Field>
  );
}

export function RecordName({ kind, id }: { kind: Kind; id: string }) {
  return <span dir="auto">{useRecordName(kind, id)}</span>;
}

// In a bar of filters.
export function RecordFilter(
  { label, value, onChange, ...picker }: Omit<PickerProps, "value" | "onChange"> & {
    label: string;
    value: string | undefined;
    onChange: (id: string | undefined) => void;
  },
) {
  const id = useId();
  return (
    <div class="filter">
      <label for={id}>
        <span>{label}</span>
      </label>
      <Picker
        none={t().common.all}
        {...picker}
        value={value ?? ""}
        onChange={(id) => onChange(id || undefined)}
        control={{ id }}
      />
    </div>
  );
}

function Picker(
  { kind, value, onChange, none, types, without, control }: PickerProps & {
    control: Partial<Control>;
  },
) {
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  // What is typed; null: the name of what is chosen is shown.
  const [text, setText] = useState<string | null>(null);
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const name = useRecordName(kind, value);
  const search = useDelayed(text?.trim() ?? "", 150);
  const wanted = { search, types, without };
  const { rows, hasMore, isStale, error } = useRecords(kind, wanted, isOpen);
  const choices = toChoices(rows ?? [], text ?? "", isStale || search !== (text ?? "").trim());
  if (none !== undefined && !text) choices.unshift(["", none]);
  const close = () => {
    setOpen(false);
    setText(null);
  };
  const open = () => {
    if (isOpen) return;
    setOpen(true);
    setActive(Math.max(0, choices.findIndex(([id]) => id === value)));
  };
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    if (choice[0] !== value) onChange(choice[0]);
  };
  const handleKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (isOpen) setActive((active + step + choices.length) % Math.max(1, choices.length));
      else open();
    } else if (isOpen && (event.key === "Enter" || event.key === "Escape")) {
      // Neither a form nor a dialog takes the key.
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Enter") choose(choices[active]);
      else close();
    }
  };
  return (
    <>
      <input
        {...control}
        ref={input}
        type="text"
        role="combobox"
        dir="auto"
        class="picker"
        autocomplete="off"
        spellcheck={false}
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={isOpen ? list : undefined}
        aria-activedescendant={isOpen && choices.length ? `${list}-${active}` : undefined}
        placeholder={none ?? t().picker.choose}
        value={text ?? name}
        onClick={open}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
          setOpen(true);
        }}
        onKeyDown={handleKey}
        onBlur={() => {
          if (text === "" && none !== undefined && value) onChange("");
          close();
        }}
      />
      {isOpen && (
        <Choices
          id={list}
          input={input}
          choices={choices}
          active={active}
          note={noteOf(rows !== undefined, choices.length, hasMore, error?.message)}
          onActive={setActive}
          onChoose={choose}
        />
      )}
    </>
  );
}

// Of rows for another text, those that fit this one too.
function toChoices(rows: { id: string; name: string }[], text: string, isStale: boolean): Choice[] {
  const wanted = text.trim().toLowerCase();
  return rows
    .filter(({ name }) => !isStale || name.toLowerCase().includes(wanted))
    .map(({ id, name }) => [id, name]);
}

function noteOf(isLoaded: boolean, count: number, hasMore: boolean, error: string | undefined) {
  const texts = t().picker;
  if (error) return error;
  if (!isLoaded) return texts.loading;
  if (!count) return texts.nothing;
  return hasMore ? texts.more : null;
}

function Choices(
  { id, input, choices, active, note, onActive, onChoose }: {
    id: string;
    input: { current: HTMLInputElement | null };
    choices: Choice[];
    active: number;
    note: string | null;
    onActive: (index: number) => void;
    onChoose: (choice: Choice) => void;
  },
) {
  const popover = useRef<HTMLDivElement>(null);
  const place = () => {
    if (!input.current || !popover.current) return;
    popover.current.style.width = `${Math.max(200, input.current.offsetWidth)}px`;
    placeBelow(input.current, popover.current);
  };
  useLayoutEffect(() => popover.current?.showPopover(), []);
  useLayoutEffect(place);
  useEffect(() => {
    addEventListener("scroll", place, true);
    addEventListener("resize", place);
    return () => {
      removeEventListener("scroll", place, true);
      removeEventListener("resize", place);
    };
  }, []);
  useEffect(() => {
    popover.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    // The focus stays in the field.
    <div
      ref={popover}
      popover="manual"
      class="menu picker-list"
      onMouseDown={(event) => event.preventDefault()}
    >
      <div role="listbox" id={id} aria-label={t().picker.choices}>
        {choices.map((choice, index) => (
          <div
            key={choice[0]}
            role="option"
            id={`${id}-${index}`}
            class="palette-entry"
            dir="auto"
            aria-selected={index === active}
            onMouseMove={() => onActive(index)}
            onClick={() => onChoose(choice)}
          >
            {choice[1]}
          </div>
        ))}
      </div>
      <p class="hint" role="status">{note}</p>
    </div>
  );
}
