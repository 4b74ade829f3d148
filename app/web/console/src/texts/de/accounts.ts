import type { Catalog } from "..";

const accounts: Catalog["accounts"] = {
  thisLink: "Dieser Link",
  firstName: "Vorname",
  lastName: "Nachname",
  newPassword: "Neues Passwort",
  rules: {
    length: "mindestens 8 Zeichen",
    upper: "ein Großbuchstabe",
    lower: "ein Kleinbuchstabe",
    digit: "eine Ziffer",
  },
  ruleMet: "erfüllt",
  incomplete: "Vielleicht ist er unvollständig: Kopieren Sie den ganzen Link aus der E-Mail.",
  invalidTitle: "Dieser Link ist nicht gültig",
  expiredTitle: "Dieser Link ist abgelaufen",
  getMail: "E-Mail für ein neues Passwort anfordern",
  toConsole: "Zur Konsole",
  join: "Parley beitreten",
  joinTenant: (tenant: string) => `${tenant} beitreten`,
  createAccount: "Legen Sie Ihr Konto an.",
  joinAction: "Beitreten",
  signUpClosed:
    "Die Registrierung ist hier geschlossen. Bitten Sie die Administration um eine Einladung, und öffnen Sie den Link darin.",
  invitedBy: (inviter: string, tenant: string, role: string) =>
    `${inviter} lädt Sie zu ${tenant} ein. Ihre Rolle: ${role}.`,
  invited: (tenant: string, role: string) =>
    `Sie sind zu ${tenant} eingeladen. Ihre Rolle: ${role}.`,
  joined: "Sie sind beigetreten",
  joinedSignIn: "Ihr Konto ist bereit. Melden Sie sich an, um fortzufahren.",
  joinedBefore: "Sie sind bereits beigetreten",
  signInAs: (email: string) =>
    `Melden Sie sich als ${email} an. Wenn Sie Ihr Passwort nicht kennen, wählen Sie ein neues.`,
  invitationInvalid: "Diese Einladung ist nicht gültig",
  askInviter: "Bitten Sie sonst um eine neue Einladung.",
  anAdministrator: "die Administration",
  invitationExpired: "Diese Einladung ist abgelaufen",
  invitationRevoked: "Diese Einladung wurde zurückgezogen",
  askFor: (inviter: string, email: string) =>
    `Bitten Sie ${inviter} um eine neue Einladung an ${email}.`,
  invitationNewer: "Es gibt eine neuere Einladung",
  openNewest: (email: string) => `Öffnen Sie den Link in der neuesten E-Mail an ${email}.`,
  forgotTitle: "Passwort vergessen?",
  forgotAbout: "Wir senden Ihnen eine E-Mail mit einem Link, um ein neues zu wählen.",
  sendMail: "E-Mail senden",
  mailSent: "Sehen Sie in Ihr Postfach",
  mailSentAbout: (email: string) =>
    `Wenn ${email} hier ein Konto hat, ist eine E-Mail unterwegs. Ihr Link gilt eine Stunde.`,
  resetTitle: "Neues Passwort wählen",
  resetAbout: "Alle Sitzungen Ihres Kontos enden damit.",
  resetAction: "Passwort ändern",
  resetDone: "Das Passwort ist geändert",
  resetDoneAbout:
    "Alle Sitzungen Ihres Kontos sind beendet. Melden Sie sich mit dem neuen Passwort an.",
  endedTitle: "Dieser Link funktioniert nicht mehr",
  resetEnded:
    "Er wurde benutzt, oder Ihr Konto hat sich seither geändert. Melden Sie sich an, oder fordern Sie eine neue E-Mail an.",
  resetExpired: "Fordern Sie eine neue E-Mail an.",
  verifyAbout: (email: string) => `Ein Klick, und wir wissen, dass ${email} Ihnen gehört.`,
  verifyAction: "Adresse bestätigen",
  verified: "Ihre Adresse ist bestätigt",
  verifiedAbout: "Sie können jetzt alles tun, was Ihre Rolle erlaubt.",
  usedTitle: "Dieser Link wurde benutzt",
  verifiedBefore: "Ihre E-Mail-Adresse ist bestätigt. Hier ist nichts mehr zu tun.",
  verifyByReset:
    "Wählen Sie stattdessen per E-Mail ein neues Passwort: Auch das bestätigt Ihre Adresse.",
  recipientTitle: "E-Mails über Formulareinsendungen",
  recipientAbout: "Bestätigen Sie, dass Einsendungen an Ihre Adresse gesendet werden dürfen.",
  recipientAction: "Adresse bestätigen",
  recipientDone: "Ihre Adresse ist bestätigt",
  recipientDoneAbout: "Einsendungen von Formularen dürfen nun an sie gesendet werden.",
};
export default accounts;
