import { Smartphone, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useRead } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { IconButton } from "../../../ui/button";
import { Confirm } from "../../../ui/dialog";
import { Ago } from "../../../ui/small";
import { Loaded } from "../../../ui/states";
import { notify } from "../../../ui/toast";
import { refreshMfa } from "./mfa";

type Device = Schemas["Device"];

export function Devices({ run }: { run: (action: () => Promise<void>) => Promise<void> }) {
  const texts = t().people.me;
  const devices = useRead("/api/v1/mfa/devices", {});
  const [removed, setRemoved] = useState<Device | null>(null);
  const remove = ({ id }: Device) => {
    setRemoved(null);
    return run(async () => {
      await api.delete("/api/v1/mfa/devices/{device_id}", { path: { device_id: id } });
      notify(texts.removed);
      await refreshMfa();
    });
  };
  return (
    <Loaded query={devices} rows={1}>
      {({ devices: rows }) => (
        <>
          <ul class="devices" aria-label={texts.devices}>
            {rows.map((device) => (
              <DeviceRow
                key={device.id}
                device={device}
                onRemove={() => setRemoved(device)}
              />
            ))}
          </ul>
          {removed && (
            <Confirm
              title={texts.removeTitle(removed.name)}
              action={texts.remove}
              onConfirm={() => remove(removed)}
              onClose={() => setRemoved(null)}
            >
              <p>{rows.length === 1 ? texts.removeLast : texts.removeAbout}</p>
            </Confirm>
          )}
        </>
      )}
    </Loaded>
  );
}

function DeviceRow({ device, onRemove }: { device: Device; onRemove: () => void }) {
  const texts = t().people.me;
  return (
    <li>
      <Smartphone aria-hidden="true" />
      <span class="grow">
        <span dir="auto">{device.name}</span>
        <span class="hint">
          {texts.added} <Ago at={device.created_at} />
          {device.last_used_at && (
            <>
              {" · "}
              {texts.lastUsed} <Ago at={device.last_used_at} />
            </>
          )}
        </span>
      </span>
      <IconButton icon={Trash2} label={texts.removeOf(device.name)} onClick={onRemove} />
    </li>
  );
}
