import "./docs.css";

import { render } from "preact";
import { LocationProvider } from "preact-iso";

import { required } from "../../../static/shared/dom.js";
import { refresh, session } from "../api/session";
import "../shell/language";
import { loadPart } from "../load_part";
import { loadLanguage, loadTexts } from "../texts";
import { Frame } from "./frame";
import { DOCS } from "../base";
import { loadReference } from "./state";

// Whoever is not signed in can read everything.
refresh().catch(() => (session.value = null));
void loadReference();
await loadLanguage();
await loadPart(() => loadTexts(["docs"]));
render(
  <LocationProvider scope={DOCS}>
    <Frame />
  </LocationProvider>,
  required(document.getElementById("console")),
);
