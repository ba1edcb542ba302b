// Validation of the names of device pools, attributes, capacities and requests, and of lists of them.
import {
  byteLength,
  dns1123LabelErrors,
  fieldDuplicate,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
  fieldTooMany,
  regexText,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { driverNameCauses } from './driver-name.ts'
import { subdomain } from './values.ts'

const longestPool = 253
const longestId = 32
/** Of a qualified name: domain, slash, identifier. */
const longestKey = 63 + 1 + longestId
const identifierText = regexText(
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
  '[A-Za-z_][A-Za-z0-9_]*',
  'my_name',
  'MY_NAME',
  'MyName',
)

/** Validates the name of a pool: subdomains separated by slashes. */
export function poolNameCauses(path: string, name: string): StatusCause[] {
  if (name === '') return [fieldRequired(path)]
  return [
    ...(byteLength(name) > longestPool ? [fieldTooLong(path, longestPool)] : []),
    ...name.split('/').flatMap((part) => subdomain(path, part)),
  ]
}

/** Validates `[DOMAIN/]ID`: the name of an attribute or of a capacity. */
export function deviceQualifiedNameCauses(path: string, name: string): StatusCause[] {
  if (name === '') return [fieldRequired(path, 'name required')]
  const [first = '', second, ...more] = name.split('/')
  if (second === undefined) return identifierCauses(path, first)
  if (more.length > 0) return []
  return [
    ...(first === '' ? [fieldRequired(path, 'the domain must not be empty')] : driverNameCauses(path, first)),
    ...(second === '' ? [fieldRequired(path, 'the name must not be empty')] : identifierCauses(path, second)),
  ]
}

/** Validates `DOMAIN/ID`. */
export function deviceFullNameCauses(path: string, name: string): StatusCause[] {
  const causes = deviceQualifiedNameCauses(path, name)
  return name === '' || name.includes('/') ? causes : [...causes, fieldInvalid(path, name, 'must include a domain')]
}

function identifierCauses(path: string, id: string): StatusCause[] {
  return [
    ...(byteLength(id) > longestId ? [fieldTooLong(path, longestId)] : []),
    ...(/^[A-Za-z_][A-Za-z0-9_]*$/.test(id) ? [] : [fieldInvalid(path, id, identifierText)]),
  ]
}

/** A map key as field paths show it: the middle of a long key is cut out. */
export function truncatedKey(key: string): string {
  if (key.length <= longestKey) return key
  const rest = longestKey - 3
  return `${key.slice(0, Math.ceil(rest / 2))}...${key.slice(-Math.floor(rest / 2))}`
}

/** Validates each item and the length of a list. `most` below zero: no limit. */
export function listCauses<Item>(
  path: string,
  items: readonly Item[],
  most: number,
  itemCauses: (path: string, item: Item) => StatusCause[],
): StatusCause[] {
  return [
    ...items.flatMap((item, index) => itemCauses(`${path}[${index}]`, item)),
    ...(most >= 0 && items.length > most ? [fieldTooMany(path, items.length, most)] : []),
  ]
}

/**
 * Errors for keys that occur twice. `member`: the member of an item that holds its key; empty if the item is the key.
 */
export function repeatedCauses(path: string, keys: readonly string[], member: string): StatusCause[] {
  const seen = new Set<string>()
  return keys.flatMap((key, index) => {
    if (seen.has(key)) return [fieldDuplicate(`${path}[${index}]${member === '' ? '' : `.${member}`}`, key)]
    seen.add(key)
    return []
  })
}

/** The names of requests in a claim, and `REQUEST/ALTERNATIVE` for each alternative. */
export type RequestNames = ReadonlySet<string>

/** Validates a reference to a request of the claim. */
export function requestReferenceCauses(path: string, name: string, names: RequestNames): StatusCause[] {
  const unknown = fieldInvalid(
    path,
    name,
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
  )
  const segments = name.split('/')
  if (segments.length > 2) return [unknown]
  return [
    ...segments.flatMap((segment) => dns1123LabelErrors(segment).map((text) => fieldInvalid(path, segment, text))),
    ...(names.has(name) ? [] : [unknown]),
  ]
}
