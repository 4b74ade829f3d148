import { BookOpen, MessageCircle, UserRound } from "lucide-preact";

import { may } from "../../api/session";
import { BASE, href } from "../../base";
import { t } from "../../texts";
import { Section } from "../../ui/page";

export function Links() {
  const texts = t().home;
  return (
    <Section title={texts.links}>
      <ul class="options">
        {may("agents:read") && (
          <li>
            <a class="option" href={href("/agents")}>
              <MessageCircle aria-hidden="true" />
              <strong>{t().rail.agents}</strong>
              <span>{texts.agentsAbout}</span>
            </a>
          </li>
        )}
        <li>
          <a class="option" href={`${BASE}/docs`} target="_blank" rel="noreferrer">
            <BookOpen aria-hidden="true" />
            <strong>{t().rail.reference}</strong>
            <span>{texts.referenceAbout}</span>
          </a>
        </li>
        <li>
          <a class="option" href={href("/people/me")}>
            <UserRound aria-hidden="true" />
            <strong>{t().rail.account}</strong>
            <span>{texts.accountAbout}</span>
          </a>
        </li>
      </ul>
    </Section>
  );
}
