// Der Rahmen der API-Referenz; die Texte der Operationen sind die des API-Dokuments.
import type { Catalog } from "..";
import { count } from "./count";

const docs: Catalog["docs"] = {
  title: "API-Referenz",
  introduction: "Einführung",
  errors: "Fehlercodes",
  operations: "Operationen",
  search: "Operationen suchen",
  found: (number: number) => count(number, "Operation gefunden", "Operationen gefunden"),
  nothingFound: "Keine Operation hat alle diese Wörter.",
  console: "Konsole",
  missing: "Diese Operation gibt es nicht",
  missingHint:
    "Die Adresse ist vielleicht falsch geschrieben, oder eine andere Version von Parley hat die Operation.",
  missingCode: (code: string) => `Kein Fehler hat den Code ${code}.`,
  baseUrl: "Basisadresse",
  version: "Version",
  document: "OpenAPI-Dokument",
  groups: "Gruppen",
  groupsAbout:
    "Jede Operation hat eine eigene Seite mit Beispielen und einem Formular zum Ausprobieren.",
  access: "Zugriff",
  isPublic: "Ohne Anmeldung",
  schemes: {
    access_token: "Zugriffstoken",
    service_key: "Dienstschlüssel",
    visitor_token: "Besuchertoken",
    embed_key: "Einbettungsschlüssel",
    embed_key_header: "Einbettungsschlüssel im Header X-API-Key",
    embed_key_query: "Einbettungsschlüssel als Query-Parameter api_key",
  },
  permission: "Berechtigung",
  lacksPermission: (role: string, permission: string) =>
    `Ihre Rolle, ${role}, hat die Berechtigung ${permission} nicht.`,
  parameters: "Parameter",
  places: { path: "Pfad", query: "Query", header: "Header" },
  body: "Body",
  optionalBody: "Der Body kann fehlen.",
  answers: "Antworten",
  noContent: "Ohne Body.",
  event: (name: string) => `Ereignis ${name}`,
  example: "Beispiel",
  required: "Pflicht",
  or: " oder ",
  listOf: (type: string) => `Liste von ${type}`,
  mapOf: (type: string) => `Objekt mit Werten vom Typ ${type}`,
  any: "beliebiger Wert",
  fieldsOf: (name: string) => `Felder von ${name}`,
  ofObject: "dem Objekt",
  defaultValue: (value: string) => `Standard ${value}`,
  values: "Eines von",
  atLeast: (value: number) => `mindestens ${value.toLocaleString("de")}`,
  atMost: (value: number) => `höchstens ${value.toLocaleString("de")}`,
  chars: (least: number, most: number | undefined) =>
    most === undefined
      ? `mindestens ${least.toLocaleString("de")} Zeichen`
      : least
      ? `${least.toLocaleString("de")} bis ${most.toLocaleString("de")} Zeichen`
      : `höchstens ${most.toLocaleString("de")} Zeichen`,
  items: (least: number, most: number | undefined) =>
    most === undefined
      ? `mindestens ${count(least, "Eintrag", "Einträge")}`
      : least
      ? `${least.toLocaleString("de")} bis ${count(most, "Eintrag", "Einträge")}`
      : `höchstens ${count(most, "Eintrag", "Einträge")}`,
  pattern: "Muster",
  errorsOf: "Fehler",
  errorsAbout: "Ein Fehler ist ein Objekt mit einem festen Code und einer Meldung für Menschen.",
  answeredBy: (number: number) => count(number, "Operation", "Operationen"),
  answeredByAny: "Er ist nicht bei einzelnen Operationen aufgeführt.",
  request: "Beispiel",
  jump: "Beispiel und Formular",
  language: "Sprache der Beispiele",
  tokenHint: (name: string) => `${name} steht für eine Umgebungsvariable.`,
  tryIt: "Ausprobieren",
  tryAbout: (email: string) => `Die Anfrage wird als ${email} gesendet und ändert echte Daten.`,
  trySignedOut: "Melden Sie sich an, um diese Anfrage mit Ihrer Sitzung zu senden.",
  tryPublic: "Diese Anfrage kann jeder senden.",
  tryKey:
    "Diese Anfrage wird mit dem Token oder Schlüssel eines Besuchers gesendet, nicht mit Ihrer Sitzung.",
  signIn: "Anmelden",
  key: "Token oder Schlüssel",
  keyHint: "Er wird als Bearer-Token gesendet und nicht gespeichert.",
  json: "Body (JSON)",
  send: "Senden",
  stop: "Anhalten",
  sending: "Wartet auf die Antwort …",
  fillIn: "Füllen Sie dieses Feld aus",
  confirmTitle: "Diese Anfrage senden?",
  confirmAbout: "Sie löscht echte Daten. Das lässt sich nicht rückgängig machen.",
  confirm: "Senden und löschen",
  response: "Antwort",
  headers: (number: number) => `Header (${number.toLocaleString("de")})`,
  responseBody: "Body der Antwort",
  emptyBody: "Die Antwort hat keinen Body.",
  showAll: (size: string) => `Alles anzeigen (${size})`,
  download: (size: string) => `Datei speichern (${size})`,
};
export default docs;
