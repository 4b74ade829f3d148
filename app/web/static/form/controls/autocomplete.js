// What a browser may fill in, guessed from the id of a field.

const TOKENS = {
  name: "name full_name fullname your_name",
  "given-name": "first_name firstname given_name forename",
  "family-name": "last_name lastname surname family_name",
  organization: "company organization organisation employer",
  "organization-title": "job_title role position",
  "street-address": "address street street_address",
  "address-level2": "city town",
  "address-level1": "state province region",
  "postal-code": "zip zip_code postcode postal_code",
  "country-name": "country",
  bday: "birthday birth_date date_of_birth dob",
};
const BY_ID = new Map(
  Object.entries(TOKENS).flatMap(([token, ids]) => ids.split(" ").map((id) => [id, token])),
);

/** @type {(field: Field) => string | null} */
export function guessAutocomplete(field) {
  return BY_ID.get(field.id.toLowerCase().replaceAll("-", "_")) ?? null;
}
