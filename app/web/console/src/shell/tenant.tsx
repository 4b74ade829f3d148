// Which tenant a super_admin looks at.
import { Building2, Globe, List } from "lucide-preact";
import { useLocation } from "preact-iso";

import { useRead } from "../api/queries";
import { isSuperAdmin, selectTenant, tenant } from "../api/session";
import { href } from "../base";
import { t } from "../texts";
import { Menu } from "../ui/menu";

export function TenantMenu() {
  const { route } = useLocation();
  const id = tenant.value;
  const chosen = useRead(
    "/api/v1/tenants/{tenant_id}",
    { path: { tenant_id: id ?? "" } },
    { enabled: Boolean(id) && isSuperAdmin(), staleTime: 300_000 },
  );
  if (!isSuperAdmin()) return null;
  const texts = t().tenantMenu;
  const name = id ? chosen.data?.name ?? id : texts.all;
  const items = [
    ...(id ? [{ label: texts.all, icon: Globe, onSelect: () => selectTenant(null) }] : []),
    {
      label: texts.choose,
      icon: List,
      onSelect: () => route(href("/people", { tab: "tenants" })),
    },
  ];
  return (
    <Menu
      label={`${texts.current}: ${name}`}
      class={id ? "tenant-button chosen" : "tenant-button"}
      items={items}
    >
      {id ? <Building2 aria-hidden="true" /> : <Globe aria-hidden="true" />}
      <span class="hidden">{`${texts.current}: `}</span>
      <span class="clip" dir="auto">{name}</span>
    </Menu>
  );
}
