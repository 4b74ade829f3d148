// The screens that need no session, by their addresses below the console's.
import type { ComponentType } from "preact";
import { lazy } from "preact-iso";

import { loadScreen } from "../shell/parts";
import { SignInScreen } from "./sign_in/screen";

const Accounts = lazy(() => loadScreen(() => import("./accounts"), ["accounts"])) as ComponentType;

export const OPEN_SCREENS: Record<string, ComponentType> = {
  "/sign-in": SignInScreen,
  "/register": Accounts,
  "/verify-email": Accounts,
  "/confirm-recipient": Accounts,
  "/forgot-password": Accounts,
  "/reset-password": Accounts,
};
