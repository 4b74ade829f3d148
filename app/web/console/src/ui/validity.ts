// Whether all fields of a form can be read. A form with a text that is not JSON is not sent.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Validity {
  isValid: boolean;
  report: (field: string, isValid: boolean) => void;
}

export function useValidity(): Validity {
  const [invalid, setInvalid] = useState<ReadonlySet<string>>(new Set());
  const report = useCallback((field: string, isValid: boolean) => {
    setInvalid((before) => {
      if (before.has(field) !== isValid) return before;
      const after = new Set(before);
      if (isValid) after.delete(field);
      else after.add(field);
      return after;
    });
  }, []);
  return { isValid: invalid.size === 0, report };
}

// Reports a field while it is on the page.
export function useReport(
  validity: Validity | undefined,
  field: string,
  isValid: boolean,
): void {
  const latest = useRef(validity);
  latest.current = validity;
  useEffect(() => latest.current?.report(field, isValid), [field, isValid]);
  useEffect(() => () => latest.current?.report(field, true), [field]);
}
