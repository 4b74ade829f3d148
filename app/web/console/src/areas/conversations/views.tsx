// Filters that are saved under a name: the views of the list.
import { Bookmark, Ellipsis, Users } from "lucide-preact";
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { type Problem as ApiProblem, toProblem } from "../../api/problem";
import { queries, refresh, useChange, useRead } from "../../api/queries";
import { may, session } from "../../api/session";
import type { Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Menu, type MenuItem } from "../../ui/menu";
import { Problem } from "../../ui/states";
import { doLater } from "../../ui/toast";
import { pickFilters, replaceFilters } from "./filters";
import { changeView, LIST, ViewDialog } from "./view_dialog";

type View = Schemas["SavedViewView"];
type Filters = Record<string, string | undefined>;

const leaving = signal<ReadonlySet<string>>(new Set());
const failure = signal<ApiProblem | null>(null);
const MANY = 100;

interface ViewsProps {
  filters: Filters;
  setFilters: (changes: Filters) => void;
}

export function Views({ filters, setFilters }: ViewsProps) {
  const [dialog, setDialog] = useState<"new" | "edit" | null>(null);
  const query = useRead(LIST, { query: { kind: "conversations", per_page: MANY, sort: "name" } });
  const texts = t().conversations;
  const views = (query.data?.data ?? []).filter(({ id }) => !leaving.value.has(id));
  const open = views.find(({ id }) => id === filters.view);
  const now = pickFilters(filters);
  const isChanged = !isSame(now, open ? pickFilters(open.filters) : {});
  const save = useChange((view: View) => changeView(view.id, { filters: now }), [LIST]);
  return (
    <nav class="views" aria-label={texts.views}>
      <ul class="row">
        {views.length > 0 && <ViewLink name={t().common.all} isOpen={!open} filters={{}} />}
        {views.map(({ id, name, filters: saved, is_shared }) => (
          <ViewLink
            key={id}
            name={name}
            isShared={is_shared}
            isOpen={id === open?.id}
            filters={{ ...pickFilters(saved), view: id }}
          />
        ))}
      </ul>
      {open && isOwn(open) && isChanged && (
        <Button
          busy={save.isPending}
          onClick={() => save.mutate(open)}
        >
          {texts.updateView}
        </Button>
      )}
      {isChanged && (
        <Button kind="plain" icon={Bookmark} onClick={() => setDialog("new")}>
          {texts.saveView}
        </Button>
      )}
      {open && isOwn(open) && (
        <ViewMenu
          view={open}
          onEdit={() => setDialog("edit")}
          onDeleted={() => setFilters({ ...replaceFilters({}), view: undefined })}
        />
      )}
      <Problem error={save.error ?? query.error ?? failure.value} />
      {dialog && (
        <ViewDialog
          view={dialog === "edit" ? open : undefined}
          filters={now}
          onClose={() => setDialog(null)}
          onSaved={(id) => {
            setDialog(null);
            setFilters({ view: id });
          }}
        />
      )}
    </nav>
  );
}

function ViewLink(
  { name, filters, isOpen, isShared }: {
    name: string;
    filters: Filters;
    isOpen: boolean;
    isShared?: boolean;
  },
) {
  return (
    <li>
      <a
        class="view"
        href={href("/conversations", filters)}
        aria-current={isOpen ? "page" : undefined}
      >
        <span class="clip" dir="auto">{name}</span>
        {isShared && <Users aria-label={t().conversations.shared} role="img" />}
      </a>
    </li>
  );
}

function ViewMenu(
  { view, onEdit, onDeleted }: { view: View; onEdit: () => void; onDeleted: () => void },
) {
  const texts = t().conversations;
  const share = useChange(() => changeView(view.id, { is_shared: !view.is_shared }), [LIST]);
  const items: MenuItem[] = [
    { label: texts.editView, onSelect: onEdit },
    {
      label: view.is_shared ? texts.unshare : texts.share,
      onSelect: () => share.mutate(undefined),
    },
    {
      label: texts.deleteView,
      isDanger: true,
      onSelect: () => {
        deleteView(view);
        onDeleted();
      },
    },
  ];
  return (
    <>
      <Menu label={texts.viewActions} icon={Ellipsis} items={items} />
      <Problem error={share.error} />
    </>
  );
}

// The server permits changes to the owner and to administrators.
function isOwn(view: View): boolean {
  return view.user_id === session.value?.user.id || may("admin:users");
}

function isSame(one: Filters, other: Filters): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length &&
    names.every((name) => one[name] === other[name]);
}

function show(id: string): void {
  leaving.value = new Set([...leaving.value].filter((other) => other !== id));
}

function deleteView({ id, name }: View): void {
  failure.value = null;
  doLater(t().conversations.viewDeleted(name), {
    apply: () => (leaving.value = new Set([...leaving.value, id])),
    revert: () => show(id),
    commit: async () => {
      try {
        await api.delete("/api/v1/views/{saved_view_id}", { path: { saved_view_id: id } });
        await refresh(queries, [LIST]);
      } catch (error) {
        failure.value = toProblem(error);
      }
      show(id);
    },
  });
}
