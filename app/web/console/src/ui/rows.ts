// The entries of an object as rows. Keys may be empty or double while somebody types.
import { useEffect, useRef, useState } from "preact/hooks";

interface Row<Value> {
  id: number;
  key: string;
  value: Value;
}

export interface Rows<Value> {
  rows: Row<Value>[];
  set: (id: number, changes: { key?: string; value?: Value }) => void;
  add: (key: string, value: Value) => number;
  remove: (id: number) => void;
  hasDouble: boolean;
  isDouble: (key: string) => boolean;
}

let last = 0;

function rowsOf<Value>(object: Record<string, Value>): Row<Value>[] {
  return Object.entries(object).map(([key, value]) => ({
    id: ++last,
    key,
    value,
  }));
}

function objectOf<Value>(rows: Row<Value>[]): Record<string, Value> {
  return Object.fromEntries(
    rows.filter(({ key }) => key).map(({ key, value }) => [key, value]),
  );
}

export function useRows<Value>(
  object: Record<string, Value>,
  onChange: (object: Record<string, Value>) => void,
): Rows<Value> {
  const [rows, setRows] = useState(() => rowsOf(object));
  const latest = useRef(rows);
  const text = JSON.stringify(object);
  useEffect(() => {
    // Somebody else has changed the object.
    if (text === JSON.stringify(objectOf(latest.current))) return;
    latest.current = rowsOf(object);
    setRows(latest.current);
  }, [text]);
  const change = (next: Row<Value>[]) => {
    latest.current = next;
    setRows(next);
    onChange(objectOf(next));
  };
  const isDouble = (key: string) =>
    key !== "" && latest.current.filter((row) => row.key === key).length > 1;
  return {
    rows,
    set: (id, changes) =>
      change(
        latest.current.map((
          row,
        ) => (row.id === id ? { ...row, ...changes } : row)),
      ),
    add: (key, value) => {
      const id = ++last;
      change([...latest.current, { id, key, value }]);
      return id;
    },
    remove: (id) => change(latest.current.filter((row) => row.id !== id)),
    hasDouble: rows.some(({ key }) => isDouble(key)),
    isDouble,
  };
}
