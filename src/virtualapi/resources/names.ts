// Which names objects of a kind may have. The rules themselves are apimachinery's.
import { dns1035LabelErrors, dns1123LabelErrors, dns1123SubdomainErrors } from '../../apimachinery/field/index.ts'

/** A check of a name: complaints, none for a good name. With `prefix`, more characters follow: a trailing dash is fine. */
export type NameCheck = (name: string, options: { prefix: boolean }) => string[]

const withPrefix =
  (rule: (name: string) => string[]): NameCheck =>
  (name, { prefix }) =>
    // As upstream: whatever follows a dash makes it valid, and the length is checked when the name is whole.
    rule(prefix && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name)

export const subdomainName: NameCheck = withPrefix(dns1123SubdomainErrors)
export const labelName: NameCheck = withPrefix(dns1123LabelErrors)
export const label1035Name: NameCheck = withPrefix(dns1035LabelErrors)

/** Of kinds that ask for nothing more: anything that is one path segment. */
export const pathSegmentName: NameCheck = (name, { prefix }) => {
  if (!prefix && (name === '.' || name === '..')) return [`may not be '${name}'`]
  return ['/', '%'].filter((character) => name.includes(character)).map((character) => `may not contain '${character}'`)
}
