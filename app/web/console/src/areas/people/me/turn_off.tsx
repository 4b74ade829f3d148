import { api } from "../../../api/client";
import { t } from "../../../texts";
import { notify } from "../../../ui/toast";
import { CodeDialog } from "./code_dialog";

export function TurnOff({ onClose }: { onClose: () => void }) {
  const texts = t().people.me;
  return (
    <CodeDialog
      title={texts.turnOffTitle}
      about={texts.turnOffAbout}
      action={texts.turnOff}
      isDanger
      send={(code) => api.post("/api/v1/mfa/disable", { body: { code } })}
      onDone={() => {
        notify(texts.turnedOff);
        onClose();
      }}
      onClose={onClose}
    />
  );
}
