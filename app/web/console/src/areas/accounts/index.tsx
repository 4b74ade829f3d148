// The screens that the links of mails lead to. They need no session.
import { useLocation } from "preact-iso";
import type { ComponentType } from "preact";

import { CONSOLE } from "../../base";
import { ConfirmRecipient, VerifyEmail } from "./confirm";
import { ForgotPassword, ResetPassword } from "./passwords";
import { Register } from "./register";

const SCREENS: Record<string, ComponentType> = {
  "/register": Register,
  "/verify-email": VerifyEmail,
  "/confirm-recipient": ConfirmRecipient,
  "/forgot-password": ForgotPassword,
  "/reset-password": ResetPassword,
};

export default function Accounts() {
  const { path } = useLocation();
  const Screen = SCREENS[path.slice(CONSOLE.length)];
  return Screen ? <Screen /> : null;
}
