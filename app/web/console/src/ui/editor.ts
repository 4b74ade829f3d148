// The state of a form that edits a record. Edits are kept in this browser until they are saved, and
// offered again after a reload. A change of somebody else is never overwritten unseen.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Problem, toProblem } from "../api/problem";
import { readStored, store, useShortcut } from "./state";

interface Copy<Values> {
  at: string;
  values: Partial<Values>;
}

interface EditorInput<Rec extends object, Values extends object> {
  // Names the record in this browser, such as "agent agt_1".
  name: string;
  // As it was read last.
  record: Rec;
  toValues: (record: Rec) => Values;
  // Stores the values that differ, if the record has not changed since it was read: `tagOf(origin)`.
  save: (changes: Partial<Values>, origin: Rec) => Promise<Rec>;
  // Reads the record again, after a conflict.
  reload: () => Promise<Rec>;
  onSaved?: (record: Rec) => void;
}

export interface Editor<Rec extends object, Values extends object> {
  // What was read or saved last, below the edits.
  record: Rec;
  values: Values;
  set: (changes: Partial<Values>) => void;
  isChanged: boolean;
  isSaving: boolean;
  isSaved: boolean;
  // The messages of the server, by the names of fields.
  errors: Record<string, string>;
  problem: Problem | null;
  save: () => Promise<boolean>;
  discard: () => void;
  // Edits of an earlier visit that can be restored.
  copy: { at: string; restore: () => void; discard: () => void } | null;
  // The record of somebody else, which a save would have overwritten.
  conflict: { theirs: Rec; keepMine: () => Promise<boolean>; takeTheirs: () => void } | null;
}

export function useEditor<Rec extends object, Values extends object>(
  { name, record, toValues, save, reload, onSaved }: EditorInput<Rec, Values>,
): Editor<Rec, Values> {
  const key = `parley-edit ${name}`;
  const [base, setBase] = useState(record);
  const [edits, setEdits] = useState<Partial<Values>>({});
  const [stored, setStored] = useState(() => readStored<Copy<Values>>(key));
  const [theirs, setTheirs] = useState<Rec | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [isSaved, setSaved] = useState(false);
  // What was read last, when it became the base or a newer answer did.
  const adopted = useRef(record);
  const latest = useRef({ base, edits });
  latest.current = { base, edits };

  const changes = useMemo(() => differing(toValues(base), edits), [base, edits]);
  const isChanged = Object.keys(changes).length > 0;

  // What others saved is shown at once, while there is nothing of one's own to lose.
  useEffect(() => {
    if (isChanged || record === adopted.current) return;
    adopted.current = record;
    setBase(record);
  }, [record, isChanged]);

  const keep = (next: Partial<Values>) => {
    const own = differing(toValues(latest.current.base), next);
    const isEmpty = Object.keys(own).length === 0;
    store(key, isEmpty ? null : { at: new Date().toISOString(), values: own });
  };
  const set = (next: Partial<Values>) => {
    const all = { ...latest.current.edits, ...next };
    latest.current.edits = all;
    setEdits(all);
    setSaved(false);
    setProblem(null);
    // Edits of an earlier visit are still offered.
    keep({ ...stored?.values, ...all });
  };
  const begin = (next: Rec) => {
    // An answer is newer than what was read before it.
    if (next !== latest.current.base) adopted.current = record;
    latest.current = { base: next, edits: {} };
    setBase(next);
    setEdits({});
    setTheirs(null);
    setProblem(null);
    store(key, null);
    setStored(null);
  };
  const saveOver = async (origin: Rec): Promise<boolean> => {
    const sent = latest.current.edits;
    setSaving(true);
    setProblem(null);
    try {
      const next = await save(differing(toValues(origin), sent), origin);
      finish(next, sent);
      return true;
    } catch (error) {
      const found = toProblem(error);
      if (found.code !== "precondition_failed") setProblem(found);
      else await reload().then(setTheirs, (failure) => setProblem(toProblem(failure)));
      return false;
    } finally {
      setSaving(false);
    }
  };
  // What was typed while the request was on its way is still to be saved.
  const finish = (next: Rec, sent: Partial<Values>) => {
    const later = differing(sent as Values, latest.current.edits);
    begin(next);
    if (Object.keys(later).length) set(later);
    else setSaved(true);
    onSaved?.(next);
  };
  const saveAll = async () => isSaving || (isChanged && await saveOver(base));
  useShortcut("mod+s", saveAll);

  return {
    record: base,
    values: { ...toValues(base), ...edits },
    set,
    isChanged,
    isSaving,
    isSaved: isSaved && !isChanged,
    errors: problem?.fields ?? {},
    problem: problem && Object.keys(problem.fields).length === 0 ? problem : null,
    save: saveAll,
    discard: () => begin(base),
    copy: stored && {
      at: stored.at,
      restore: () => {
        const all = { ...latest.current.edits, ...stored.values };
        setStored(null);
        latest.current.edits = all;
        setEdits(all);
      },
      discard: () => {
        setStored(null);
        keep(latest.current.edits);
      },
    },
    conflict: theirs && {
      theirs,
      keepMine: () => {
        setBase(theirs);
        latest.current.base = theirs;
        setTheirs(null);
        return saveOver(theirs);
      },
      takeTheirs: () => begin(theirs),
    },
  };
}

function differing<Values extends object>(
  before: Values,
  edits: Partial<Values>,
): Partial<Values> {
  const pairs = Object.entries(edits).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(before[name as keyof Values])
  );
  return Object.fromEntries(pairs) as Partial<Values>;
}
