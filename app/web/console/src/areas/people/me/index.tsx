import { session } from "../../../api/session";
import { t } from "../../../texts";
import { Page } from "../../../ui/page";
import { Tabs } from "../../../ui/small";
import { Mfa } from "./mfa";
import { Password } from "./password";
import { Profile } from "./profile";
import { Sessions } from "./sessions";

// `isBelow`: for those who also see the others.
export function Me({ title, isBelow }: { title: string; isBelow?: boolean }) {
  const texts = t().people.me;
  return (
    <Page
      title={title}
      parents={isBelow ? [{ label: t().rail.people, to: "/people" }] : []}
      about={<span dir="auto">{session.value?.user.email}</span>}
    >
      <Tabs
        label={title}
        tabs={[
          ["profile", texts.tabs.profile],
          ["security", texts.tabs.security],
          ["sessions", texts.tabs.sessions],
        ]}
      >
        {(open) => ({
          profile: <Profile />,
          security: (
            <>
              <Mfa />
              <Password />
            </>
          ),
          sessions: <Sessions />,
        }[open])}
      </Tabs>
    </Page>
  );
}
