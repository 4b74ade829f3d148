import "./ui/styles.css";

import { QueryClientProvider } from "@tanstack/preact-query";
import { render } from "preact";
import { LocationProvider, Route, Router, useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";

import { required } from "../../static/shared/dom.js";
import "./api/live";
import { queries } from "./api/queries";
import { refresh, session } from "./api/session";
import { OPEN_SCREENS } from "./areas/open_screens";
import { preloadScreen } from "./areas/screens";
import { Expired } from "./areas/sign_in/expired";
import { CONSOLE, DOCS, href } from "./base";
import { Guard } from "./shell/guard";
import "./shell/language";
import { Palette } from "./shell/palette";
import { Rail, visibleScreens } from "./shell/rail";
import { Shortcuts } from "./shell/shortcuts";

import { Top } from "./shell/top";
import { VerifyBanner } from "./shell/verify";
import { loadLanguage, t } from "./texts";
import { LinkButton } from "./ui/button";
import { Page } from "./ui/page";
import { Failure, Skeleton } from "./ui/states";
import { Toasts } from "./ui/toast";
import { signal } from "@preact/signals";

const SIGN_IN = href("/sign-in");
const START_AGAIN_MS = 2_000;
const startError = signal<unknown>(null);

function Console() {
  const { path, url, query, route } = useLocation();
  const isOpen = path.slice(CONSOLE.length) in OPEN_SCREENS;
  useEffect(() => {
    if (session.value === null && !isOpen) {
      route(href("/sign-in", url === CONSOLE ? {} : { next: url }), true);
    }
    if (session.value && path === SIGN_IN) {
      const reference = referenceAfterSignIn(query.next);
      if (reference) location.replace(reference);
      else route(screenAfterSignIn(query.next), true);
    }
  }, [session.value, path]);
  if (startError.value) {
    return (
      <main class="sign-in" id="main">
        <Failure error={startError.value} onRetry={start} />
      </main>
    );
  }
  if (isOpen && (path !== SIGN_IN || session.value === null)) return <OpenScreen />;
  return <Frame />;
}

// Only addresses of the console: a link of somebody else must not lead elsewhere.
function screenAfterSignIn(next: string | undefined): string {
  return next?.startsWith(`${CONSOLE}/`) && !next.startsWith(SIGN_IN) ? next : CONSOLE;
}

// The API reference has a page of its own, so that it is not a screen to route to.
function referenceAfterSignIn(next: string | undefined): string | null {
  if (!next?.startsWith(DOCS) || !URL.canParse(next, location.origin)) return null;
  const { origin, pathname } = new URL(next, location.origin);
  const isReference = pathname === DOCS || pathname.startsWith(`${DOCS}/`);
  return origin === location.origin && isReference ? pathname : null;
}

function OpenScreen() {
  return (
    <Router>
      {Object.entries(OPEN_SCREENS).map(([path, component]) => (
        <Route key={path} path={CONSOLE + path} component={component} />
      ))}
    </Router>
  );
}

function Frame() {
  const { path } = useLocation();
  const screens = visibleScreens();
  return (
    <>
      <a class="skip" href="#main">{t().common.skip}</a>
      <div class="shell">
        <Rail />
        <div class="stage">
          <Top />
          <VerifyBanner />
          <main id="main" tabIndex={-1}>
            {session.value
              ? (
                <Guard path={path}>
                  <Router>
                    {screens.map((screen) => (
                      <Route
                        key={screen.key}
                        path={patternOf(screen.path)}
                        component={screen.component}
                      />
                    ))}
                    <Route default component={Missing} />
                  </Router>
                </Guard>
              )
              : <Skeleton />}
          </main>
        </div>
      </div>
      {session.value && (
        <>
          <Shortcuts />
          <Palette />
        </>
      )}
      <Expired />
      <Toasts />
    </>
  );
}

function patternOf(path: string): string {
  return path === "/" ? CONSOLE : `${CONSOLE}${path}/:rest*`;
}

function Missing() {
  return (
    <Page title={t().errors.screen}>
      <div class="stack">
        <p class="about">{t().errors.screenHint}</p>
        <div class="actions">
          <LinkButton to="/">{t().rail.home}</LinkButton>
        </div>
      </div>
    </Page>
  );
}

// Tries again by itself: a server that restarts is back within seconds.
async function start(): Promise<void> {
  try {
    await refresh();
    startError.value = null;
  } catch (error) {
    startError.value = error;
    setTimeout(start, START_AGAIN_MS);
  }
}

void start();
const texts = loadLanguage();
preloadScreen(location.pathname.slice(CONSOLE.length));
// The texts of a screen, which are loaded with it, can be missing after an upgrade: the screen says so.
await texts.catch(() => undefined);
render(
  <QueryClientProvider client={queries}>
    <LocationProvider scope={CONSOLE}>
      <Console />
    </LocationProvider>
  </QueryClientProvider>,
  required(document.getElementById("console")),
);
