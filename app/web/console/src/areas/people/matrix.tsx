// What each role may do: permissions by category, one column for each role.
import { Check, Minus } from "lucide-preact";
import { useMemo, useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { queries, refresh, useRead } from "../../api/queries";
import { isSuperAdmin, may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { EditNotes, SaveButton, SaveState } from "../../ui/edit_state";
import { type Editor, useEditor } from "../../ui/editor";
import { Filter, SearchField } from "../../ui/field";
import { RecordHistory } from "../../ui/history";
import { Section } from "../../ui/page";
import { Failure, Skeleton } from "../../ui/states";
import { type Role, roleChoices, ROLES } from "./roles";

type Permission = Schemas["PermissionView"];
type Grants = Record<Role, string[]>;
// As the server has them, with the tag of each role's record.
type RoleRecord = Schemas["RolePermissions"];
type Records = Record<Role, RoleRecord>;

const PATH = "/roles/{role}/permissions";

export function RoleMatrix() {
  const catalogue = useRead("/permissions", {}, { staleTime: 300_000 });
  const roles = ROLES.map((role) => useRead(PATH, { path: { role } }));
  const records = useMemo(
    () => collect(roles.map(({ data }) => data)),
    roles.map(({ data }) => data),
  );
  const failed = [catalogue, ...roles].find(({ error, data }) => error && !data);
  if (failed) {
    const retry = () => [catalogue, ...roles].forEach((read) => void read.refetch());
    return <Failure error={failed.error} onRetry={retry} />;
  }
  if (!catalogue.data || !records) return <Skeleton rows={10} />;
  return <Matrix permissions={catalogue.data.permissions} records={records} />;
}

function collect(answers: (RoleRecord | undefined)[]): Records | null {
  const pairs = answers.flatMap((answer) => answer ? [[answer.role, answer] as const] : []);
  return pairs.length === ROLES.length ? Object.fromEntries(pairs) as Records : null;
}

function toValues(records: Records): Grants {
  const pairs = ROLES.map((role) => [role, [...records[role].permissions].sort()]);
  return Object.fromEntries(pairs) as Grants;
}

async function readAll(): Promise<Records> {
  const answers = await Promise.all(ROLES.map((role) => api.get(PATH, { path: { role } })));
  return collect(answers) as Records;
}

// A role is one record of the server: each that differs is saved if nobody else has changed it.
async function save(records: Records, changes: Partial<Grants>): Promise<Records> {
  for (const [role, permissions] of Object.entries(changes) as [Role, string[]][]) {
    await api.put(PATH, { path: { role }, body: { permissions } }, {
      ifMatch: tagOf(records[role]),
    });
  }
  await refresh(queries, [PATH]);
  return readAll();
}

function Matrix({ permissions, records }: { permissions: Permission[]; records: Records }) {
  const texts = t().people.matrix;
  const [wanted, setWanted] = useState("");
  const editor = useEditor<Records, Grants>({
    name: "roles",
    record: records,
    toValues,
    save: (changes, origin) => save(origin, changes),
    reload: readAll,
  });
  const canEdit = isSuperAdmin() && may("admin:roles");
  return (
    <>
      <p class="about">{texts.about} {canEdit ? texts.effect : texts.readOnly}</p>
      <div class="bar">
        <div class="filters">
          <SearchField label={texts.filter} value={wanted} onInput={setWanted} />
        </div>
        {canEdit && (
          <div class="actions">
            <SaveState editor={editor} />
            {editor.isChanged && <Button onClick={editor.discard}>{texts.discard}</Button>}
            <SaveButton editor={editor} />
          </div>
        )}
      </div>
      <EditNotes editor={editor} toValues={toValues} labels={t().roles} />
      <Grid
        permissions={permissions.filter((one) => matches(one, wanted))}
        saved={toValues(records)}
        editor={editor}
        canEdit={canEdit}
      />
      {canEdit && <RoleHistory />}
    </>
  );
}

function RoleHistory() {
  const [role, setRole] = useState<string | undefined>();
  // What super administrators may do does not change.
  const [first, ...others] = roleChoices().slice(1);
  const [key, label] = first ?? ["", ""];
  return (
    <Section title={t().history.title}>
      <div class="filters">
        <Filter
          label={t().common.role}
          value={role}
          choices={others}
          all={label}
          onChange={setRole}
        />
      </div>
      <RecordHistory
        key={role ?? key}
        kind="role"
        recordId={role ?? key}
        labels={{ permissions: t().people.tabs.roles }}
      />
    </Section>
  );
}

function matches({ key, description }: Permission, wanted: string): boolean {
  return `${key} ${description}`.toLowerCase().includes(wanted.trim().toLowerCase());
}

interface GridProps {
  permissions: Permission[];
  saved: Grants;
  editor: Editor<Records, Grants>;
  canEdit: boolean;
}

function Grid(props: GridProps) {
  const texts = t().people;
  const categories = [...new Set(props.permissions.map(({ category }) => category))];
  return (
    <div class="table-frame matrix" tabIndex={0} role="group" aria-label={texts.tabs.roles}>
      <table aria-label={texts.tabs.roles}>
        <thead>
          <tr>
            <th scope="col">{texts.matrix.permission}</th>
            {ROLES.map((role) => <th key={role} scope="col">{t().roles[role]}</th>)}
          </tr>
        </thead>
        {categories.map((category) => (
          <tbody key={category}>
            <tr class="category">
              <th scope="rowgroup" colSpan={ROLES.length + 1}>
                {texts.matrix.categories[category] ?? category}
              </th>
            </tr>
            {props.permissions.filter((one) => one.category === category).map((permission) => (
              <PermissionRow key={permission.key} permission={permission} grid={props} />
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function PermissionRow({ permission, grid }: { permission: Permission; grid: GridProps }) {
  const texts = t().people.matrix;
  return (
    <tr>
      <th scope="row">
        <span>{texts.permissions[permission.key] ?? permission.description}</span>
        <code class="soft">{permission.key}</code>
        {permission.instance_wide && <span class="hint">{texts.instanceWide}</span>}
      </th>
      {ROLES.map((role) => <Cell key={role} role={role} permission={permission} grid={grid} />)}
    </tr>
  );
}

function Cell(
  { role, permission, grid }: { role: Role; permission: Permission; grid: GridProps },
) {
  const texts = t().people;
  const { editor } = grid;
  const isGranted = editor.values[role].includes(permission.key);
  const isChanged = isGranted !== grid.saved[role].includes(permission.key);
  const isFixed = role === "super_admin" || permission.instance_wide;
  if (!grid.canEdit || isFixed) {
    return (
      <td>
        {isGranted ? <Check aria-hidden="true" /> : <Minus aria-hidden="true" class="soft" />}
        <span class="hidden">{isGranted ? texts.matrix.granted : texts.matrix.notGranted}</span>
      </td>
    );
  }
  return (
    <td class={isChanged ? "changed" : ""}>
      <input
        type="checkbox"
        checked={isGranted}
        aria-label={texts.matrix.cell(permission.key, t().roles[role])}
        onChange={() => editor.set({ [role]: toggle(editor.values[role], permission.key) })}
      />
    </td>
  );
}

function toggle(keys: string[], key: string): string[] {
  return keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key].sort();
}
