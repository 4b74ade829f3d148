// The tools of an MCP server.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { may } from "../../api/session";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { Loaded } from "../../ui/states";

interface Props {
  // undefined: the tool is not stored yet.
  id: string | undefined;
  isChanged: boolean;
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  isOptional?: boolean;
  value: string;
  onInput: (value: string) => void;
  onDiscover: (input: { input_schema: object; description: string }) => void;
}

// What is asked is the server that is stored, not the one that is being typed.
export function DiscoveredField(props: Props) {
  const { id, isChanged, label, hint, error, isOptional, value, onInput } = props;
  const [isOpen, setOpen] = useState(false);
  const texts = t().tools;
  return (
    <div class="stack">
      <TextField
        label={label}
        hint={hint}
        error={error}
        isOptional={isOptional ?? false}
        value={value}
        onInput={onInput}
      />
      {may("tools:execute") && (
        <div class="row">
          <Button
            disabled={!id || isChanged}
            onClick={() => id && !isChanged && setOpen(true)}
          >
            {texts.discover}
          </Button>
          {(!id || isChanged) && <span class="hint">{texts.saveFirst}</span>}
        </div>
      )}
      {isOpen && id && (
        <Discovered
          {...props}
          id={id}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}

function Discovered(
  { id, onInput, onDiscover, onClose }: Props & {
    id: string;
    onClose: () => void;
  },
) {
  const discover = useChange(() =>
    api.post("/v1/tools/{tool_id}/discover", { path: { tool_id: id } })
  );
  const [isAsked, setAsked] = useState(false);
  if (!isAsked) {
    setAsked(true);
    discover.mutate(undefined);
  }
  const query = {
    data: discover.data?.data,
    error: discover.error,
    refetch: () => discover.mutate(undefined),
  };
  return (
    <Dialog title={t().tools.discovered} onClose={onClose} isWide>
      <Loaded query={query} rows={3}>
        {(tools) =>
          tools.length
            ? (
              <div class="options">
                {tools.map(({ name, description, input_schema }) => (
                  <button
                    key={name}
                    type="button"
                    class="option"
                    onClick={() => {
                      onInput(name);
                      onDiscover({ input_schema, description });
                      onClose();
                    }}
                  >
                    <strong dir="auto">{name}</strong>
                    <span dir="auto">{description}</span>
                  </button>
                ))}
              </div>
            )
            : <p class="soft">{t().tools.noneDiscovered}</p>}
      </Loaded>
    </Dialog>
  );
}
