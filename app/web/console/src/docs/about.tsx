// The first page: where the API is, and what holds for all operations.
import { t } from "../texts";
import { CopyText } from "../ui/copy";
import { Facts, Page, Section } from "../ui/page";
import type { Reference } from "./document";
import { Prose } from "./prose";
import { BASE_URL, pathOf } from "./state";

export function About({ reference }: { reference: Reference }) {
  const [intro = "", ...sections] = reference.about.split(/^## /m);
  const texts = t().docs;
  return (
    <Page title={texts.title}>
      <Prose text={intro} />
      <Facts
        rows={[
          [texts.baseUrl, <CopyText key="url" text={BASE_URL} />],
          [texts.version, reference.version],
          [texts.document, <a key="document" href={`${BASE_URL}/openapi.json`}>openapi.json</a>],
        ]}
      />
      {sections.map((section) => {
        const [title = "", ...lines] = section.split("\n");
        return (
          <Section key={title} title={title}>
            <Prose text={lines.join("\n").trim()} />
          </Section>
        );
      })}
      <Section title={texts.groups} about={texts.groupsAbout}>
        <div class="docs-groups">
          {reference.groups.map(({ name, tags }) => (
            <section class="card" key={name}>
              <h3>{name}</h3>
              <dl>
                {tags.map((tag) => (
                  <div key={tag.name}>
                    <dt>
                      <a href={pathOf(tag.operations[0]?.address)}>{tag.name}</a>
                    </dt>
                    <dd class="hint">{tag.about}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
      </Section>
    </Page>
  );
}
