import { ChevronRight, Circle, CircleCheck } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Section } from "../../ui/page";
import { readStored, store } from "../../ui/state";
import { Loaded } from "../../ui/states";
import { keyOfSteps, type Step, useSteps } from "./steps";

// Once all is done, nothing is asked of the server any more.
export function NextSteps() {
  const key = keyOfSteps();
  const [isHidden, setHidden] = useState(() => Boolean(readStored(key)));
  const steps = useSteps(!isHidden);
  const isFinished = Boolean(steps.data?.every(({ isDone }) => isDone));
  useEffect(() => setHidden(Boolean(readStored(key))), [key]);
  useEffect(() => {
    if (isFinished && steps.data?.length) store(key, true);
  }, [isFinished, key]);
  if (isHidden || isFinished) return null;
  const hide = () => {
    store(key, true);
    setHidden(true);
  };
  return (
    <Section
      title={t().home.next}
      actions={<Button kind="plain" onClick={hide}>{t().home.hide}</Button>}
    >
      <Loaded query={steps} rows={5}>{(data) => <List steps={data} />}</Loaded>
    </Section>
  );
}

function List({ steps }: { steps: Step[] }) {
  const texts = t().home.steps;
  return (
    <ol class="rows steps">
      {steps.map(({ key, isDone, to }) => (
        <li key={key} class={isDone ? "done" : ""}>
          {isDone ? <CircleCheck aria-hidden="true" /> : <Circle aria-hidden="true" />}
          <span class="grow">
            <strong>{texts[key].title}</strong>
            {isDone
              ? <span class="hidden">{t().home.done}</span>
              : <span class="soft">{texts[key].about}</span>}
          </span>
          {!isDone && (
            <a class="button" href={href(to)}>
              {texts[key].action}
              <ChevronRight aria-hidden="true" />
            </a>
          )}
        </li>
      ))}
    </ol>
  );
}
