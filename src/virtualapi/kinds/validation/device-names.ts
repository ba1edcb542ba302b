// Validation of the names of device pools, attributes, capacities and requests, and of lists of them.
import { regexText } from '#apimachinery/field/index.ts'
import { driverName, label, subdomain } from './basic-rules.ts'
import { all, each, matches, maxBytes, maxItems, required, type Report, type Rule } from './vocabulary.ts'

const longestId = 32
/** The length of a qualified name: domain, slash, identifier. */
const longestKey = 63 + 1 + longestId

/** The name of a pool: subdomains separated by slashes. */
export const poolName = required(
  all<string>(maxBytes(253), (name, report) => {
    for (const part of name.split('/')) report.check(subdomain, part)
  }),
)

const identifier = all<string>(
  maxBytes(longestId),
  matches(
    /^[A-Za-z_][A-Za-z0-9_]*$/,
    regexText(
      "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
      '[A-Za-z_][A-Za-z0-9_]*',
      'my_name',
      'MY_NAME',
      'MyName',
    ),
  ),
)
const domainOf = required(driverName, 'the domain must not be empty')
const idOf = required(identifier, 'the name must not be empty')

/** `[DOMAIN/]ID`: the name of an attribute or of a capacity. */
export const deviceQualifiedName = required((name: string, report: Report) => {
  const [first = '', second, ...more] = name.split('/')
  if (second === undefined) {
    report.check(identifier, first)
    return
  }
  if (more.length > 0) return
  report.check(domainOf, first)
  report.check(idOf, second)
}, 'name required')

/** The full name of an attribute or of a capacity: `DOMAIN/ID`. */
export const deviceFullName: Rule<string> = (name, report) => {
  report.check(deviceQualifiedName, name)
  if (name !== '' && !name.includes('/')) report.invalid('', name, 'must include a domain')
}

/** A map key in the form of field paths, in which the middle of a long key is cut out. */
export function truncatedKey(key: string): string {
  if (key.length <= longestKey) return key
  const rest = longestKey - 3
  return `${key.slice(0, Math.ceil(rest / 2))}...${key.slice(-Math.floor(rest / 2))}`
}

type List<T> = readonly T[] | null | undefined

/**
 * A list of at most `most` items, which must all have different keys. As upstream, all items are validated before the
 * number of items and the keys.
 */
export function keyedList<T, C>(
  item: Rule<T, C>,
  { most, member, keyOf }: { most?: number; member?: string; keyOf?: (item: T) => string },
): Rule<List<T>, C> {
  const items = each(item)
  const bound = maxItems(most ?? Infinity)
  return (list, report, context) => {
    items(list, report, context)
    report.check(bound, list)
    if (keyOf === undefined || !list || list.length < 2) return
    const seen = new Set<string>()
    for (const [index, one] of list.entries()) {
      const key = keyOf(one)
      if (seen.has(key)) report.duplicate(member === undefined ? index : `[${index}].${member}`, key)
      seen.add(key)
    }
  }
}

const mostReferences = 32
const unknownText =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

/** The names of requests in a claim, and `REQUEST/ALTERNATIVE` for each alternative. */
export interface RequestNames {
  readonly names: ReadonlySet<string>
}

/** A reference to a request of the claim. */
export const requestReference: Rule<string, RequestNames> = (name, report, { names }) => {
  const segments = name.split('/')
  if (segments.length <= 2) for (const segment of segments) report.check(label, segment)
  if (segments.length > 2 || !names.has(name)) report.invalid('', name, unknownText)
}

/** References to requests: each request must exist and may be named once, and the number of references is bounded. */
export const requestReferences = keyedList(requestReference, { most: mostReferences, keyOf: (name) => name })
