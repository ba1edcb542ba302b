// Rules for names, keys and values. Every function returns Kubernetes' error messages; none when the value is valid.
// Lengths are in bytes, as in Go.

type Rule = (value: string) => string[]

const label1123 = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain1123 = `${label1123}(\\.${label1123})*`
const label1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const qualifiedName = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const labelValue = `(${qualifiedName})?`
const configMapKey = '[-._a-zA-Z0-9]+'

const label1123Re = new RegExp(`^${label1123}$`)
const subdomain1123Re = new RegExp(`^${subdomain1123}$`)
const label1035Re = new RegExp(`^${label1035}$`)
// Matches the same names as qualifiedNameText, without backtracking on a long hostile value.
const qualifiedNameRe = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const configMapKeyRe = new RegExp(`^${configMapKey}$`)

const label1123Message =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
const subdomain1123Message =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
const label1035Message =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"
const qualifiedNameMessage =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const labelValueMessage =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const configMapKeyMessage = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"

/** `must be no more than N characters` */
export function maxLengthText(length: number): string {
  return `must be no more than ${String(length)} characters`
}

/** `message (e.g. 'a',  or 'b', regex used for validation is 're')`, spelled as upstream does. */
export function regexText(message: string, regex: string, ...examples: string[]): string {
  if (examples.length === 0) return `${message} (regex used for validation is '${regex}')`
  const list = examples.map((example, i) => `${i > 0 ? ' or ' : ''}'${example}', `).join('')
  return `${message} (e.g. ${list}regex used for validation is '${regex}')`
}

/** Length in bytes, which is what Go's len() gives. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text)
}

/** A DNS label of RFC 1123: names of namespaces and containers. */
export const dns1123LabelErrors: Rule = (value) => {
  const errors = byteLength(value) > 63 ? [maxLengthText(63)] : []
  if (label1123Re.test(value)) return errors
  return subdomain1123Re.test(value)
    ? [...errors, 'must not contain dots']
    : [...errors, regexText(label1123Message, label1123, 'my-name', '123-abc')]
}

/** A DNS subdomain of RFC 1123: names of most objects, API groups. */
export const dns1123SubdomainErrors: Rule = (value) => {
  const errors = byteLength(value) > 253 ? [maxLengthText(253)] : []
  return subdomain1123Re.test(value)
    ? errors
    : [...errors, regexText(subdomain1123Message, subdomain1123, 'example.com')]
}

/** A DNS label of RFC 1035: names of Services, versions and plurals of CRDs. */
export const dns1035LabelErrors: Rule = (value) => {
  const errors = byteLength(value) > 63 ? [maxLengthText(63)] : []
  return label1035Re.test(value) ? errors : [...errors, regexText(label1035Message, label1035, 'my-name', 'abc-123')]
}

/** Matches nearly all valid names without allocating anything. */
const shortNameRe = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/** `[PREFIX/]NAME`: keys of labels and annotations, finalizers. */
export const qualifiedNameErrors: Rule = (value) => {
  if (shortNameRe.test(value)) return []
  const parts = value.split('/')
  const regex = regexText(qualifiedNameMessage, qualifiedName, 'MyName', 'my.name', '123-abc')
  if (parts.length > 2) {
    return [`a qualified name ${regex} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  }
  const errors: string[] = []
  const [prefix, name = ''] = parts.length === 2 ? parts : [undefined, value]
  if (prefix === '') errors.push('prefix part must be non-empty')
  else if (prefix !== undefined) errors.push(...dns1123SubdomainErrors(prefix).map((text) => `prefix part ${text}`))
  if (name === '') errors.push('name part must be non-empty')
  else if (byteLength(name) > 63) errors.push(`name part ${maxLengthText(63)}`)
  if (!qualifiedNameRe.test(name)) errors.push(`name part ${regex}`)
  return errors
}

/** The value of a label. */
export const labelValueErrors: Rule = (value) => {
  if (value === '' || shortNameRe.test(value)) return []
  const errors = byteLength(value) > 63 ? [maxLengthText(63)] : []
  if (qualifiedNameRe.test(value)) return errors
  return [...errors, regexText(labelValueMessage, labelValue, 'MyValue', 'my_value', '12345')]
}

const plainKeyRe = /^[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}$/

/** A key of a ConfigMap or a Secret. */
export const configMapKeyErrors: Rule = (value) => {
  if (plainKeyRe.test(value)) return []
  const errors = byteLength(value) > 253 ? [maxLengthText(253)] : []
  if (!configMapKeyRe.test(value))
    errors.push(regexText(configMapKeyMessage, configMapKey, 'key.name', 'KEY_NAME', 'key-name'))
  if (value === '.') errors.push("must not be '.'")
  else if (value === '..') errors.push("must not be '..'")
  else if (value.startsWith('..')) errors.push("must not start with '..'")
  return errors
}
