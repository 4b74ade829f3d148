import { BookOpen, LogOut, Menu as MenuIcon, UserRound } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";

import { permissions, session, signOut } from "../api/session";
import { BASE, href } from "../base";
import { type Screen, SCREENS } from "../areas/screens";
import { t } from "../texts";
import { IconButton } from "../ui/button";
import { Menu } from "../ui/menu";
import { Avatar, pathOfPicture } from "../ui/small";
import { Mark } from "./mark";

const GROUPS = ["", "build", "look", "manage"] as const;
const RAIL_ID = "rail";

export function visibleScreens(): Screen[] {
  return SCREENS.filter(({ needs }) =>
    !needs.length || needs.some((permission) => permissions.value.has(permission))
  );
}

export function Rail() {
  const { path } = useLocation();
  const rail = useRef<HTMLElement>(null);
  useEffect(() => {
    if (rail.current?.matches(":popover-open")) rail.current.hidePopover();
  }, [path]);
  const screens = visibleScreens();
  return (
    <aside class="rail" id={RAIL_ID} popover="auto" ref={rail}>
      <a class="brand" href={href("/")}>
        <Mark /> Parley
      </a>
      <nav aria-label={t().common.main}>
        {GROUPS.map((group) => {
          const own = screens.filter((screen) => screen.group === group);
          return own.length > 0 && (
            <div class="rail-group" key={group}>
              {group && <p class="rail-title">{t().rail[group]}</p>}
              <ul>
                {own.map((screen) => <RailLink key={screen.key} screen={screen} path={path} />)}
              </ul>
            </div>
          );
        })}
      </nav>
      <div class="rail-foot">
        <a class="rail-link" href={`${BASE}/docs`} target="_blank" rel="noreferrer">
          <BookOpen aria-hidden="true" /> {t().rail.reference}
        </a>
        <Account />
      </div>
    </aside>
  );
}

function RailLink({ screen, path }: { screen: Screen; path: string }) {
  const to = href(screen.path);
  const isOpen = screen.path === "/" ? path === to : path === to || path.startsWith(`${to}/`);
  const Icon = screen.icon;
  return (
    <li>
      <a class="rail-link" href={to} aria-current={isOpen ? "page" : undefined}>
        <Icon aria-hidden="true" /> {t().rail[screen.key] as string}
      </a>
    </li>
  );
}

function Account() {
  const { route } = useLocation();
  const user = session.value?.user;
  if (!user) return null;
  const name = `${user.first_name} ${user.last_name}`.trim() || user.email;
  return (
    <Menu
      label={name}
      class="account"
      items={[
        {
          label: t().rail.account,
          icon: UserRound,
          onSelect: () => route(href("/people/me")),
        },
        { label: t().rail.signOut, icon: LogOut, onSelect: () => signOut() },
      ]}
    >
      <Avatar name={name} src={pathOfPicture(user.avatar_url)} />
      <span class="account-name">
        <span dir="auto">{name}</span>
        <span class="soft" dir="auto">{user.email}</span>
      </span>
    </Menu>
  );
}

// Opens the rail where the window is narrow.
export function RailButton() {
  return (
    <span class="rail-button">
      <IconButton icon={MenuIcon} label={t().rail.openMenu} popovertarget={RAIL_ID} />
    </span>
  );
}
