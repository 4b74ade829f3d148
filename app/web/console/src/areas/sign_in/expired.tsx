// Asks for the password again, above the page that stays as it is.
import { hasExpired, session, signOut } from "../../api/session";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { SignInForm } from "./form";

export function Expired() {
  const user = session.value?.user;
  if (!hasExpired.value || !user) return null;
  return (
    <Dialog
      title={t().signIn.expiredTitle}
      canDismiss={false}
      onClose={() => {}}
      actions={
        <Button kind="plain" onClick={() => signOut().finally(() => location.reload())}>
          {t().signIn.otherUser}
        </Button>
      }
    >
      <p>{t().signIn.expiredAbout}</p>
      <SignInForm email={user.email} />
    </Dialog>
  );
}
