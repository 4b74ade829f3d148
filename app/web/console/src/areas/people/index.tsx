import { t } from "../../texts";
import { Page } from "../../ui/page";
import { Skeleton } from "../../ui/states";

export default function Screen() {
  return (
    <Page title={t().rail.people}>
      <Skeleton />
    </Page>
  );
}
