// Two-factor sign-in: whether it is on, its devices and recovery codes.
import { KeyRound, Plus, ShieldCheck, ShieldOff } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { type Problem as ApiProblem, toProblem } from "../../../api/problem";
import { queries, useRead } from "../../../api/queries";
import { updateUser } from "../../../api/session";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { formatNumber } from "../../../ui/format";
import { Card, Facts, Section } from "../../../ui/page";
import { Badge } from "../../../ui/small";
import { Loaded, Problem } from "../../../ui/states";
import { CodeDialog } from "./code_dialog";
import { Devices } from "./devices";
import { SetUp, type Setup } from "./mfa_setup";
import { RecoveryCodes } from "./recovery_codes";
import { TurnOff } from "./turn_off";

type Status = Schemas["MfaStatus"];
const STATUS = "/api/v1/mfa/status";

type Open = { setup: Setup } | { codes: string[] } | "off" | null;
type Run = (action: () => Promise<void>) => Promise<void>;

export async function refreshMfa(): Promise<void> {
  const paths = [STATUS, "/api/v1/mfa/devices"];
  await Promise.all(paths.map((path) => queries.invalidateQueries({ queryKey: [path] })));
  const status = queries.getQueryData<Status>([STATUS, {}]);
  if (status) updateUser({ mfa_enabled: status.enabled });
}

// Runs actions that weaken the sign-in: the server asks for a code first, once in a session.
function useCodeGuard() {
  const [waiting, setWaiting] = useState<(() => Promise<void>) | null>(null);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const run: Run = async (action) => {
    setProblem(null);
    try {
      await action();
    } catch (error) {
      const found = toProblem(error);
      if (found.code === "mfa_required") setWaiting(() => action);
      else setProblem(found);
    }
  };
  const dialog = waiting && (
    <CodeDialog
      title={t().people.me.showCodeTitle}
      about={t().people.me.showCodeAbout}
      action={t().people.me.go}
      onClose={() => setWaiting(null)}
      onDone={() => {
        setWaiting(null);
        return run(waiting);
      }}
    />
  );
  return { run, problem, dialog };
}

export function Mfa() {
  const texts = t().people.me;
  const status = useRead(STATUS, {});
  return (
    <Section title={texts.mfaTitle} about={texts.mfaAbout}>
      <Loaded query={status} rows={2}>{(loaded) => <MfaState status={loaded} />}</Loaded>
    </Section>
  );
}

function MfaState({ status }: { status: Status }) {
  const texts = t().people.me;
  const [open, setOpen] = useState<Open>(null);
  const { run, problem, dialog } = useCodeGuard();
  const close = () => {
    setOpen(null);
    void refreshMfa();
  };
  const setUp = () => run(async () => setOpen({ setup: await api.post("/api/v1/mfa/setup", {}) }));
  const renew = () =>
    run(async () => {
      const { recovery_codes } = await api.post("/api/v1/mfa/recovery-codes", {});
      setOpen({ codes: recovery_codes });
    });
  return (
    <Card class="stack">
      <Summary status={status} />
      {status.enabled && <Devices run={run} />}
      <Problem error={problem} />
      <div class="actions">
        {status.enabled
          ? (
            <>
              <Button icon={Plus} onClick={setUp}>{texts.addDevice}</Button>
              <Button icon={KeyRound} onClick={renew}>{texts.newCodes}</Button>
              <Button icon={ShieldOff} onClick={() => setOpen("off")}>{texts.turnOff}</Button>
            </>
          )
          : <Button kind="primary" icon={ShieldCheck} onClick={setUp}>{texts.setUp}</Button>}
      </div>
      {dialog}
      {open === "off" && <TurnOff onClose={close} />}
      {open && open !== "off" && "setup" in open && (
        <SetUp
          setup={open.setup}
          onClose={() => setOpen(null)}
          onDone={() => setOpen({ codes: open.setup.recovery_codes })}
        />
      )}
      {open && open !== "off" && "codes" in open && (
        <RecoveryCodes codes={open.codes} onClose={close} />
      )}
    </Card>
  );
}

function Summary({ status }: { status: Status }) {
  const texts = t().people.me;
  const state = (
    <Badge tone={status.enabled ? "good" : "neutral"}>
      {status.enabled ? texts.mfaOn : texts.mfaOff}
    </Badge>
  );
  if (!status.enabled) return <p>{state}</p>;
  return (
    <Facts
      rows={[
        [t().common.status, state],
        [texts.codesLeft, formatNumber(status.recovery_codes_remaining)],
      ]}
    />
  );
}
