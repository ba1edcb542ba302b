// Checks of single values that many kinds share, in upstream's words.
import { isIP } from 'node:net'
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  labelValueErrors,
  qualifiedNameErrors,
  regexText,
} from '../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'

export const fieldImmutable = 'field is immutable'
export const protocols = ['SCTP', 'TCP', 'UDP'] as const

/** Not below zero; absent is fine. */
export function nonNegative(path: string, value: number | undefined): StatusCause[] {
  return value !== undefined && value < 0 ? [fieldInvalid(path, value, 'must be greater than or equal to 0')] : []
}

/** Above zero; absent is fine. */
export function positive(path: string, value: number | undefined, text = 'must be greater than zero'): StatusCause[] {
  return value !== undefined && value <= 0 ? [fieldInvalid(path, value, text)] : []
}

export function between(path: string, value: number | undefined, low: number, high: number): StatusCause[] {
  return value !== undefined && (value < low || value > high)
    ? [fieldInvalid(path, value, `must be between ${low} and ${high}, inclusive`)]
    : []
}

export function portNumber(path: string, value: number): StatusCause[] {
  return between(path, value, 1, 65535)
}

/** A number, or a port's name. */
export function portOrName(path: string, value: number | string): StatusCause[] {
  if (typeof value === 'number') return portNumber(path, value)
  return portNameErrors(value).map((text) => fieldInvalid(path, value, text))
}

/** An IANA service name. */
export function portNameErrors(name: string): string[] {
  const errors: string[] = []
  if (name.length > 15) errors.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)')
  if (name.includes('--')) errors.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen')
  return errors
}

/** One of `allowed`; absent and empty are fine. */
export function oneOf(path: string, value: string | undefined, allowed: readonly string[]): StatusCause[] {
  return value === undefined || value === '' || allowed.includes(value) ? [] : [fieldNotSupported(path, value, allowed)]
}

/** One of `allowed`; absent is fine, empty is not. */
export function supported(path: string, value: string | undefined, allowed: readonly string[]): StatusCause[] {
  return value === undefined || allowed.includes(value) ? [] : [fieldNotSupported(path, value, allowed)]
}

/** One of `allowed`, and there. */
export function requiredOneOf(path: string, value: string | undefined, allowed: readonly string[]): StatusCause[] {
  return value === undefined || value === '' ? [fieldRequired(path)] : oneOf(path, value, allowed)
}

export function required(path: string, value: string | undefined, detail = ''): StatusCause[] {
  return value === undefined || value === '' ? [fieldRequired(path, detail)] : []
}

export function subdomain(path: string, value: string): StatusCause[] {
  return dns1123SubdomainErrors(value).map((text) => fieldInvalid(path, value, text))
}

export function label(path: string, value: string): StatusCause[] {
  return dns1123LabelErrors(value).map((text) => fieldInvalid(path, value, text))
}

/** The name of another object: there, and a subdomain. */
export function objectName(path: string, value: string | undefined): StatusCause[] {
  return value === undefined || value === '' ? [fieldRequired(path)] : subdomain(path, value)
}

export function qualifiedName(path: string, value: string): StatusCause[] {
  return qualifiedNameErrors(value).map((text) => fieldInvalid(path, value, text))
}

const pathFormat = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
const pathText = regexText('Invalid path', pathFormat)

/** `DOMAIN/PATH`, such as the name of a controller. */
export function domainPath(path: string, value: string): StatusCause[] {
  if (value === '') return [fieldRequired(path)]
  const slash = value.indexOf('/')
  if (slash < 1 || slash === value.length - 1)
    return [fieldInvalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  const rest = value.slice(slash + 1)
  return [
    ...subdomain(path, value.slice(0, slash)),
    ...(/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest) ? [] : [fieldInvalid(path, rest, pathText)]),
  ]
}

/** Labels as a map: keys and values complain at the path of the map. */
export function labels(path: string, values: Readonly<Record<string, string>> | undefined): StatusCause[] {
  return Object.entries(values ?? {}).flatMap(([key, value]) => [
    ...qualifiedName(path, key),
    ...labelValueErrors(value).map((text) => fieldInvalid(path, value, text)),
  ])
}

const maxAnnotationsBytes = 256 * 1024

/** Annotations as a map: keys of any case, and all of them not too large. */
export function annotationsCauses(path: string, values: Readonly<Record<string, string>> | undefined): StatusCause[] {
  let bytes = 0
  const causes = Object.entries(values ?? {}).flatMap(([key, value]) => {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
    return qualifiedNameErrors(key.toLowerCase()).map((text) => fieldInvalid(path, key, text))
  })
  return bytes > maxAnnotationsBytes ? [...causes, fieldTooLong(path, maxAnnotationsBytes)] : causes
}

export function ipAddress(path: string, value: string): StatusCause[] {
  return isIP(value) === 0
    ? [fieldInvalid(path, value, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
    : []
}

const percentText = regexText(
  "a valid percent string must be a numeric string followed by an ending '%'",
  '[0-9]+%',
  '1%',
  '93%',
)

/** A number not below zero, or a percentage. */
export function intOrPercent(path: string, value: number | string | undefined): StatusCause[] {
  if (value === undefined) return []
  if (typeof value === 'number') return nonNegative(path, value)
  return /^[0-9]+%$/.test(value) ? [] : [fieldInvalid(path, value, percentText)]
}

/** Zero, or zero percent, or nothing. */
export function isZeroAmount(value: number | string | undefined): boolean {
  if (typeof value !== 'string') return value === undefined || value === 0
  return !/^[+-]?\d+%?$/.test(value) || parseInt(value, 10) === 0
}

/** A percentage is one of something: at most 100. */
export function atMostAll(path: string, value: number | string | undefined): StatusCause[] {
  if (typeof value !== 'string' || !/^[0-9]+%$/.test(value) || parseInt(value, 10) <= 100) return []
  return [fieldInvalid(path, value, 'must not be greater than 100%')]
}

/** A path below something: not absolute, no way back up. */
export function descendingPath(path: string, value: string): StatusCause[] {
  return [
    ...(value.startsWith('/') ? [fieldInvalid(path, value, 'must be a relative path')] : []),
    ...noBacksteps(path, value),
  ]
}

/** A path below something whose first part does not begin with the dots that the kubelet keeps for itself. */
export function ownPath(path: string, value: string): StatusCause[] {
  const reserved = value.startsWith('..') && !value.startsWith('../')
  return [...descendingPath(path, value), ...(reserved ? [fieldInvalid(path, value, "must not start with '..'")] : [])]
}

export function noBacksteps(path: string, value: string): StatusCause[] {
  return value.split('/').includes('..') ? [fieldInvalid(path, value, "must not contain '..'")] : []
}

export function fileMode(path: string, value: number | undefined): StatusCause[] {
  return value !== undefined && (value < 0 || value > 0o777)
    ? [fieldInvalid(path, value, 'must be a number between 0 and 0777 (octal), both inclusive')]
    : []
}

/** A complaint that shows Go's internal struct, whose members stand in an order of their own. */
export function invalidStruct(path: string, struct: object, detail: string): StatusCause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${JSON.stringify(struct)}: ${detail}`, field: path }
}
