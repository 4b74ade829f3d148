import { useEffect } from "preact/hooks";

import { Mark } from "../../shell/mark";
import { t } from "../../texts";
import { SignInForm } from "./form";

export function SignInScreen() {
  useEffect(() => {
    document.title = `${t().signIn.title} · Parley`;
  }, []);
  return (
    <main class="sign-in" id="main">
      <div class="card">
        <Mark />
        <h1>{t().signIn.title}</h1>
        <p class="about">{t().signIn.about}</p>
        <SignInForm />
      </div>
    </main>
  );
}
