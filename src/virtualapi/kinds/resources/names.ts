// The names that objects of a kind may have. The rules themselves are in apimachinery.
import { dns1035LabelErrors, dns1123LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'

/**
 * Returns the errors of a name; empty if it is valid. With `prefix`, the name is a generateName, to which characters
 * will be added, so it may end in a dash.
 */
export type NameCheck = (name: string, options: { prefix: boolean }) => string[]

const withPrefix =
  (rule: (name: string) => string[]): NameCheck =>
  (name, { prefix }) =>
    // As upstream: any generated suffix makes the trailing dash valid, and the length is checked on the whole name.
    rule(prefix && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name)

/** Names are DNS subdomains (RFC 1123): the rule of most kinds. */
export const subdomainName: NameCheck = withPrefix(dns1123SubdomainErrors)
/** Names are DNS labels (RFC 1123). */
export const labelName: NameCheck = withPrefix(dns1123LabelErrors)
/** Names are DNS labels that start with a letter (RFC 1035). */
export const label1035Name: NameCheck = withPrefix(dns1035LabelErrors)

/** The rule of kinds without a stricter one: any name that is one path segment. */
export const pathSegmentName: NameCheck = (name, { prefix }) => {
  if (!prefix && (name === '.' || name === '..')) return [`may not be '${name}'`]
  return ['/', '%'].filter((character) => name.includes(character)).map((character) => `may not contain '${character}'`)
}
