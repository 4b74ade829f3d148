// The message is the end of a sentence about a field, such as "must be a number".
export class WrongValue extends Error {}
