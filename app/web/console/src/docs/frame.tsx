// What is around the pages: the navigation, and the settings of this browser.
import { useLocation } from "preact-iso";
import { useLayoutEffect } from "preact/hooks";

import { LooksMenus } from "../shell/looks";
import { t } from "../texts";
import { LinkButton } from "../ui/button";
import { Page } from "../ui/page";
import { Empty, Failure, Skeleton } from "../ui/states";
import { About } from "./about";
import type { Reference } from "./document";
import { Errors } from "./errors";
import { Navigation, NavigationButton } from "./navigation";
import { OperationPage } from "./operation";
import { DOCS } from "../base";
import { loadError, loadReference, pathOf, reference } from "./state";

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
      <LooksMenus />
    </header>
  );
}
