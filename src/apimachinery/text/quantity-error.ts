// What Go says of text that is not a resource.Quantity.

const format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const anySuffix = /^[+-]?\d*(?:\.\d*)?[eEinumkKMGTP]+[+-]?\d*$/
/** Longer texts are not matched. */
const maxText = 1000

/** The error message for text that is not a quantity: of its suffix alone, if the rest of it is one. */
export function quantityError(text: string): string {
  return text.length <= maxText && anySuffix.test(text) ? "unable to parse quantity's suffix" : format
}
