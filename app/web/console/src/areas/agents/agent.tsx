import { Ellipsis } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { may } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Confirm } from "../../ui/dialog";
import { type Editor, useEditor } from "../../ui/editor";
import { EditNotes, SaveButton, SaveState } from "../../ui/edit_state";
import { Menu } from "../../ui/menu";
import { Page } from "../../ui/page";
import { Badge, Tabs } from "../../ui/small";
import { Failure, Problem, Skeleton } from "../../ui/states";
import { useFilters, whileHere } from "../../ui/state";
import { notify } from "../../ui/toast";
import { Behaviour } from "./behaviour";
import { AgentStatus } from "./list";
import { fieldLabels, PublishDialog } from "./publish";
import {
  type Agent,
  type AgentState,
  differences,
  loadState,
  saveDraft,
  toValues,
  useAgentRefresh,
  useAgentState,
  type Values,
} from "./state";
import { TABS } from "./tabs";
import { TryIt } from "./try_it/try_it";

export function AgentScreen({ id }: { id: string }) {
  const canEdit = may("agents:write");
  const { agent, state, error, refetch } = useAgentState(id, canEdit);
  const parents = [{ label: t().rail.agents, to: "/agents" }];
  const title = agent?.name ?? t().agents.agent;
  if (error && !state) {
    return (
      <Page title={title} parents={parents}>
        <Failure error={error} onRetry={refetch} />
      </Page>
    );
  }
  if (!state) {
    return (
      <Page title={title} parents={parents}>
        <Skeleton />
      </Page>
    );
  }
  return canEdit ? <Workbench state={state} /> : <Summary agent={state.agent} />;
}

function Summary({ agent }: { agent: Agent }) {
  return (
    <Page
      title={agent.name}
      parents={[{ label: t().rail.agents, to: "/agents" }]}
      beside={<AgentStatus status={agent.status} />}
    >
      <p dir="auto">{agent.description}</p>
    </Page>
  );
}

function Workbench({ state }: { state: AgentState }) {
  const { agent, draft } = state;
  const [isPublishing, setPublishing] = useState(false);
  const [filters, setFilters] = useFilters();
  const refresh = useAgentRefresh();
  const editor = useEditor({
    name: `agent ${agent.id}`,
    record: state,
    toValues,
    save: (changes, origin) => saveDraft(origin, changes),
    reload: () => loadState(agent.id),
    onSaved: refresh,
  });
  const startPublishing = async () => {
    if (!editor.isChanged || await editor.save()) setPublishing(true);
  };
  const tabs = ["behaviour" as const, ...TABS.map(({ key }) => key)]
    .map((key) => [key, t().agents.tabs[key]] as const);
  const canPublish = editor.isChanged || draft !== null || agent.status !== "published";
  return (
    <Page
      title={agent.name}
      parents={[{ label: t().rail.agents, to: "/agents" }]}
      beside={
        <>
          <AgentStatus status={agent.status} />
          {draft && <Badge tone="accent">{t().agents.hasDraft}</Badge>}
        </>
      }
      actions={
        <>
          <SaveState editor={editor} />
          <SaveButton editor={editor} label={t().agents.saveDraft} kind="quiet" />
          <Button kind="primary" disabled={!canPublish} onClick={startPublishing}>
            {t().agents.publish}
          </Button>
          <AgentMenu state={state} onChanged={refresh} onDiscard={editor.discard} />
        </>
      }
      isWide
    >
      <EditNotes editor={editor} toValues={toValues} labels={fieldLabels()} />
      <Tabs label={agent.name} tabs={tabs}>
        {(key) => (
          <div class="workbench">
            <div class="panel">
              <TabContent name={key} agent={agent} editor={editor} onChanged={refresh} />
            </div>
            <TryIt
              agentId={agent.id}
              draft={differences(agent, editor.values)}
              model={editor.values.primary_model}
              replay={filters.replay
                ? { messageId: filters.replay, conversationId: filters.of ?? "" }
                : undefined}
              onReplayed={() => setFilters({ replay: undefined, of: undefined })}
            />
          </div>
        )}
      </Tabs>
      {isPublishing && (
        <PublishDialog
          state={editor.record}
          onClose={() => setPublishing(false)}
          onPublished={() => {
            setPublishing(false);
            notify(t().agents.published);
            void refresh();
          }}
          onStale={() => void refresh()}
        />
      )}
    </Page>
  );
}

function TabContent(
  { name, agent, editor, onChanged }: {
    name: string;
    agent: Agent;
    editor: Editor<AgentState, Values>;
    onChanged: () => unknown;
  },
) {
  const Content = TABS.find(({ key }) => key === name)?.component;
  if (!Content) return <Behaviour editor={editor} />;
  return <Content agent={agent} onChanged={onChanged} />;
}

function AgentMenu(
  { state, onChanged, onDiscard }: {
    state: AgentState;
    onChanged: () => unknown;
    onDiscard: () => void;
  },
) {
  const { agent, draft } = state;
  const [question, setQuestion] = useState<"delete" | "discard" | null>(null);
  const { route } = useLocation();
  const texts = t().agents;
  const path = { agent_id: agent.id };
  const setStatus = useChange((status: Agent["status"]) =>
    api.put("/api/v1/agents/{agent_id}", { path, body: { status } })
  );
  const remove = useChange(() => api.delete("/api/v1/agents/{agent_id}", { path }), [
    "/api/v1/agents",
  ]);
  const discard = useChange(() => api.delete("/api/v1/agents/{agent_id}/draft", { path }));
  const change = (status: Agent["status"]) => setStatus.mutate(status, { onSuccess: onChanged });
  return (
    <>
      <Menu
        label={t().common.actions}
        icon={Ellipsis}
        items={[
          ...(draft ? [{ label: texts.discardDraft, onSelect: () => setQuestion("discard") }] : []),
          ...(agent.status === "archived"
            ? [{ label: texts.unarchive, onSelect: () => change("draft") }]
            : [{ label: texts.archive, onSelect: () => change("archived") }]),
          ...(may("agents:delete")
            ? [{ label: texts.delete, isDanger: true, onSelect: () => setQuestion("delete") }]
            : []),
        ]}
      />
      <Problem error={setStatus.error} />
      {question === "delete" && (
        <Confirm
          title={texts.deleteTitle(agent.name)}
          action={texts.delete}
          isBusy={remove.isPending}
          error={remove.error}
          onClose={() => setQuestion(null)}
          onConfirm={() => {
            const leave = whileHere(() => route(href("/agents"), true));
            remove.mutate(undefined, {
              onSuccess: () => {
                leave();
                notify(texts.deleted(agent.name));
              },
            });
          }}
        >
          <p>{texts.deleteAbout}</p>
        </Confirm>
      )}
      {question === "discard" && (
        <Confirm
          title={texts.discardDraft}
          action={texts.discardDraft}
          isBusy={discard.isPending}
          error={discard.error}
          onClose={() => setQuestion(null)}
          onConfirm={() =>
            discard.mutate(undefined, {
              onSuccess: () => {
                setQuestion(null);
                onDiscard();
                onChanged();
              },
            })}
        >
          <p>{texts.discardAbout}</p>
        </Confirm>
      )}
    </>
  );
}
