// The roles, the highest first.
import { session } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import type { Choice } from "../../ui/field";

export type User = Schemas["UserView"];
export type Role = User["role"];

export const ROLES: Role[] = [
  "super_admin",
  "tenant_admin",
  "agent_developer",
  "agent_user",
  "viewer",
];

export function nameOf({ first_name, last_name, email }: User): string {
  return `${first_name} ${last_name}`.trim() || email;
}

export function roleChoices(): Choice[] {
  return ROLES.map((role) => [role, t().roles[role]]);
}

// Nobody gives out a role above their own, or changes somebody who has one.
export function isWithinReach(role: Role): boolean {
  const own = session.value?.user.role;
  return own !== undefined && ROLES.indexOf(role) >= ROLES.indexOf(own);
}

export function givenRoles(): Choice[] {
  return roleChoices().filter(([role]) => isWithinReach(role as Role));
}
