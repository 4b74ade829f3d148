// What is around the pages: the navigation, and the settings of this browser.
import { Languages, Moon, Sun, SunMoon } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useLayoutEffect } from "preact/hooks";

import { saveLanguage } from "../shell/language";
import { theme, THEMES } from "../shell/theme";
import { LANGUAGES, t } from "../texts";
import { LinkButton } from "../ui/button";
import { Menu } from "../ui/menu";
import { Page } from "../ui/page";
import { Empty, Failure, Skeleton } from "../ui/states";
import { About } from "./about";
import type { Reference } from "./document";
import { Errors } from "./errors";
import { Navigation, NavigationButton } from "./navigation";
import { OperationPage } from "./operation";
import { DOCS } from "../base";
import { loadError, loadReference, pathOf, reference } from "./state";

const ICONS = { system: SunMoon, light: Sun, dark: Moon };

export function Frame() {
  const { path } = useLocation();
  const parts = path.slice(DOCS.length).split("/").filter(Boolean);
  // Before the page scrolls to a part of it.
  useLayoutEffect(() => scrollTo(0, 0), [path]);
  return (
    <>
      <a class="skip" href="#main">{t().common.skip}</a>
      <div class="shell docs">
        <Navigation reference={reference.value} parts={parts} />
        <div class="stage">
          <Top />
          <main id="main" tabIndex={-1}>
            {reference.value
              ? <Content reference={reference.value} parts={parts} />
              : (
                <div class="page">
                  {loadError.value
                    ? <Failure error={loadError.value} onRetry={loadReference} />
                    : <Skeleton />}
                </div>
              )}
          </main>
        </div>
      </div>
    </>
  );
}

function Content({ reference, parts }: { reference: Reference; parts: string[] }) {
  const [first, name] = parts;
  if (!first) return <About reference={reference} />;
  if (first === "errors") return <Errors reference={reference} code={name} />;
  const operation = reference.operations.get(name ?? "");
  if (!operation) return <Missing />;
  return <OperationPage key={operation.id} reference={reference} operation={operation} />;
}

function Missing() {
  return (
    <Page title={t().docs.missing}>
      <Empty
        title={t().docs.missing}
        action={<a class="button" href={pathOf()}>{t().docs.introduction}</a>}
      >
        {t().docs.missingHint}
      </Empty>
    </Page>
  );
}

function Top() {
  return (
    <header class="top">
      <NavigationButton />
      <span class="grow" />
      <LinkButton to="/" kind="plain">{t().docs.console}</LinkButton>
      <Menu
        label={t().rail.language}
        icon={Languages}
        items={Object.entries(LANGUAGES).map(([code, label]) => ({
          label,
          onSelect: () => saveLanguage(code),
        }))}
      />
      <Menu
        label={t().rail.theme}
        icon={ICONS[theme.value]}
        items={THEMES.map((name) => ({
          label: t().rail.themes[name],
          icon: ICONS[name],
          onSelect: () => (theme.value = name),
        }))}
      />
    </header>
  );
}
