import type { Catalog } from "..";
import { count } from "./count";

const home: Catalog["home"] = {
  hello: (name: string) => name ? `Hallo, ${name}.` : "Hallo.",
  week: "Die letzten sieben Tage",
  allUsage: "Gesamte Nutzung",
  next: "Die nächsten Schritte",
  hide: "Ausblenden",
  done: "(erledigt)",
  steps: {
    model: {
      title: "Schlüssel eines Modellanbieters hinzufügen",
      about: "Bis dahin antwortet nur das kleine Modell dieses Rechners.",
      action: "Schlüssel hinzufügen",
    },
    agent: {
      title: "Den ersten Agenten anlegen",
      about: "Ein Name, ein Modell und Anweisungen genügen, um mit ihm zu sprechen.",
      action: "Neuer Agent",
    },
    documents: {
      title: "Ihm Dokumente geben",
      about: "Er antwortet daraus und nennt die Stellen, die er verwendet hat.",
      action: "Dokumente hinzufügen",
    },
    embed: {
      title: "Ihn in eine Website einbetten",
      about: "Eine Zeile HTML zeigt den Chat Ihren Besuchern.",
      action: "Einbetten",
    },
    invite: {
      title: "Jemanden einladen",
      about: "Per E-Mail mit einem Link und der Rolle, die Sie wählen.",
      action: "Einladen",
    },
  },
  failed: "Was zuletzt fehlschlug",
  nothingFailed: "In den letzten sieben Tagen ist nichts fehlgeschlagen.",
  failedAnswers: (number: number, agent: string) =>
    `${count(number, "fehlgeschlagene Antwort", "fehlgeschlagene Antworten")} von ${agent}`,
  kinds: { answer: "Antwort", work: "Arbeit", notice: "Benachrichtigung" },
  health: "Zustand",
  healthUnknown: "Die Instanz sagt nicht, wie es ihr geht.",
  states: { ok: "Alles in Ordnung", degraded: "Etwas fehlt", unavailable: "Nicht verfügbar" },
  parts: {
    postgres: "Datenbank",
    redis: "Valkey",
    workers: "Worker",
    files: "Dateispeicher",
    local_model: "Modell dieses Rechners",
  },
  partStates: { ok: "Bereit", away: "Fehlt", starting: "Startet", off: "Aus" },
  help: {
    postgres: "Führen Sie auf dem Server „parley doctor“ aus.",
    redis: "Prüfen Sie, ob Valkey läuft und PARLEY_REDIS_URL darauf zeigt.",
    workers: "Starten Sie einen mit „parley worker“: Bis dahin geschieht nichts im Hintergrund.",
    files: "Prüfen Sie PARLEY_FILES_URI und den Platz auf der Festplatte.",
    local_model: "Beim ersten Mal dauert das Laden einige Minuten.",
  },
  sandbox: "Sandbox",
  noSandbox: "Werkzeuge mit Code laufen nicht: Dieser Rechner hat weder bubblewrap noch Landlock.",
  links: "Weiter",
  agentsAbout: "Sprechen Sie mit ihnen, und ändern Sie, was sie tun.",
  referenceAbout: "Alles hier können auch Programme tun.",
  accountAbout: "Passwort, Zwei-Faktor-Anmeldung, Sprache.",
};
export default home;
