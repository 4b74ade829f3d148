import { FileInput } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useMemo } from "preact/hooks";

import { href } from "../../base";
import { t } from "../../texts";
import { Dialog } from "../../ui/dialog";
import { Page } from "../../ui/page";
import { Badge } from "../../ui/small";
import { ToolForm } from "./editor";
import { type ToolType, TYPES } from "./types";
import { blank } from "./values";

// The first step: what kind of a tool it is.
export function ChooseType({ onClose }: { onClose: () => void }) {
  const texts = t().tools;
  return (
    <Dialog title={t().common.newTool} onClose={onClose} isWide>
      <p class="soft">{texts.chooseType}</p>
      <div class="options columns">
        {(Object.keys(TYPES) as ToolType[]).map((type) => {
          const { icon: Icon } = TYPES[type];
          return (
            <a key={type} class="option" href={href(`/tools/new/${type}`)}>
              <Icon aria-hidden="true" />
              <strong>{t().toolTypes[type]}</strong>
              <span>{texts.typeAbout[type]}</span>
            </a>
          );
        })}
        <a class="option" href={href("/tools/import")}>
          <FileInput aria-hidden="true" />
          <strong>{texts.fromOpenApi}</strong>
          <span>{texts.fromOpenApiAbout}</span>
        </a>
      </div>
    </Dialog>
  );
}

export function NewTool({ type }: { type: ToolType }) {
  const { route } = useLocation();
  const record = useMemo(() => blank(type), [type]);
  return (
    <Page
      title={t().common.newTool}
      parents={[{ label: t().rail.tools, to: "/tools" }]}
      beside={<Badge>{t().toolTypes[type]}</Badge>}
    >
      <ToolForm
        record={record}
        onStored={(id) => route(href(`/tools/${id}`, { tab: "run" }), true)}
      />
    </Page>
  );
}
