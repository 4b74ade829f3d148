import type { Catalog } from "..";
import { count } from "./count";

const turns: Catalog["turns"] = {
  title: "Was das Modell gesehen hat",
  system: "Systemnachricht",
  version: "Version",
  temperature: "Temperatur",
  maxTokens: "Längste Antwort (Tokens)",
  history: "Frühere Nachrichten",
  tokens: "Tokens",
  cost: "Kosten",
  firstToken: "Erstes Wort nach",
  time: "Ganze Antwort nach",
  trace: "Ablauf",
  openTrace: "Ablauf öffnen",
  passages: (number: number) => count(number, "Textstelle", "Textstellen"),
  tools: (number: number) => count(number, "Werkzeug", "Werkzeuge"),
  truncated: "Der Kontext war zu lang, um ganz aufbewahrt zu werden.",
  notShown: "Sie ist für diese Antwort nicht aufbewahrt, oder Ihre Rolle darf sie nicht lesen.",
  nothing: "Zu dieser Antwort ist nichts aufbewahrt",
  nothingAbout:
    "Der Agent hat sie gegeben, bevor die Plattform dies aufbewahrte, oder seine Einstellungen bewahren keine Nachrichten auf.",
  moreText: (left: string) => `Mehr anzeigen (${left} Zeichen)`,
  tokensBoth: (input: string, output: string) => `${input} Tokens hinein, ${output} heraus`,
  input: "Eingabe",
  output: "Ausgabe",
  callStatuses: {
    failed: "Fehlgeschlagen",
    timeout: "Zeitüberschreitung",
    requested: "Wartet",
    completed: "Fertig",
  },
  sources: (number: number) => count(number, "Quelle", "Quellen"),
  model: "Modell",
};
export default turns;
