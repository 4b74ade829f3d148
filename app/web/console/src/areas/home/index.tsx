import { t } from "../../texts";
import { may, session } from "../../api/session";
import { Page } from "../../ui/page";
import { Failed } from "./failed";
import { Health } from "./health";
import { Links } from "./links";
import { NextSteps } from "./next_steps";
import { Week } from "./week";

export default function Home() {
  const user = session.value?.user;
  return (
    <Page title={t().rail.home} about={user && t().home.hello(user.first_name)}>
      {may("usage:read") && <Week />}
      <div class="home">
        <div>
          <NextSteps />
          <Failed />
        </div>
        <div>
          <Health />
          <Links />
        </div>
      </div>
    </Page>
  );
}
