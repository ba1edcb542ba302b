// Validation of single values, shared by many kinds. Messages are those of upstream.
import type { Int64 } from '#apimachinery/meta/index.ts'
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
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

export const fieldImmutable = 'field is immutable'
export const protocols = ['SCTP', 'TCP', 'UDP'] as const

/** Errors for a number below zero; none if absent. */
export function nonNegative(path: string, value: Int64 | undefined): StatusCause[] {
  return value !== undefined && value < 0 ? [fieldInvalid(path, value, 'must be greater than or equal to 0')] : []
}

/** Errors for a number that is not above zero; none if absent. */
export function positive(path: string, value: Int64 | undefined, text = 'must be greater than zero'): StatusCause[] {
  return value !== undefined && value <= 0 ? [fieldInvalid(path, value, text)] : []
}

/** Validates a number between two bounds, inclusive; absent is accepted. */
export function between(path: string, value: Int64 | undefined, low: number, high: number): StatusCause[] {
  return value !== undefined && (value < low || value > high)
    ? [fieldInvalid(path, value, `must be between ${low} and ${high}, inclusive`)]
    : []
}

export function portNumber(path: string, value: number): StatusCause[] {
  return between(path, value, 1, 65535)
}

/** Validates a port number or port name. */
export function portOrName(path: string, value: number | string): StatusCause[] {
  if (typeof value === 'number') return portNumber(path, value)
  return portNameErrors(value).map((text) => fieldInvalid(path, value, text))
}

/** Errors for a port name, which must be an IANA service name (RFC 6335). */
export function portNameErrors(name: string): string[] {
  const errors: string[] = []
  if (name.length > 15) errors.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)')
  if (name.includes('--')) errors.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen')
  return errors
}

/** Validates an enum value; absent and empty are accepted. */
export function oneOf(path: string, value: string | undefined, allowed: readonly string[]): StatusCause[] {
  return value === undefined || value === '' || allowed.includes(value) ? [] : [fieldNotSupported(path, value, allowed)]
}

/** Validates an enum value; absent is accepted, empty is not. */
export function supported(path: string, value: string | undefined, allowed: readonly string[]): StatusCause[] {
  return value === undefined || allowed.includes(value) ? [] : [fieldNotSupported(path, value, allowed)]
}

/** Validates a required enum value. */
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

/** Validates a required name of another object. */
export function objectName(path: string, value: string | undefined): StatusCause[] {
  return value === undefined || value === '' ? [fieldRequired(path)] : subdomain(path, value)
}

export function qualifiedName(path: string, value: string): StatusCause[] {
  return qualifiedNameErrors(value).map((text) => fieldInvalid(path, value, text))
}

const pathFormat = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
const pathText = regexText('Invalid path', pathFormat)

/** Validates `DOMAIN/PATH`, such as the name of an ingress controller. */
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

/** Validates a map of labels. Errors have the path of the map. */
export function labels(path: string, values: Readonly<Record<string, string>> | undefined): StatusCause[] {
  return Object.entries(values ?? {}).flatMap(([key, value]) => [
    ...qualifiedName(path, key),
    ...labelValueErrors(value).map((text) => fieldInvalid(path, value, text)),
  ])
}

const maxAnnotationsBytes = 256 * 1024

/** Validates a map of annotations: keys of any case, and a limited total size. */
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

/** Validates a number that is not negative, or a percentage. */
export function intOrPercent(path: string, value: number | string | undefined): StatusCause[] {
  if (value === undefined) return []
  if (typeof value === 'number') return nonNegative(path, value)
  return /^[0-9]+%$/.test(value) ? [] : [fieldInvalid(path, value, percentText)]
}

/** True for zero, zero percent, absent and unparsable values. */
export function isZeroAmount(value: number | string | undefined): boolean {
  if (typeof value !== 'string') return value === undefined || value === 0
  return !/^[+-]?\d+%?$/.test(value) || parseInt(value, 10) === 0
}

/** Errors for a percentage above 100. */
export function atMostAll(path: string, value: number | string | undefined): StatusCause[] {
  if (typeof value !== 'string' || !/^[0-9]+%$/.test(value) || parseInt(value, 10) <= 100) return []
  return [fieldInvalid(path, value, 'must not be greater than 100%')]
}

/** Validates a relative path without `..` parts. */
export function relativePathInside(path: string, value: string): StatusCause[] {
  return [
    ...(value.startsWith('/') ? [fieldInvalid(path, value, 'must be a relative path')] : []),
    ...withoutParentSteps(path, value),
  ]
}

/** As `relativePathInside`; also refuses names that start with `..`, which the kubelet reserves. */
export function unreservedRelativePath(path: string, value: string): StatusCause[] {
  const reserved = value.startsWith('..') && !value.startsWith('../')
  return [
    ...relativePathInside(path, value),
    ...(reserved ? [fieldInvalid(path, value, "must not start with '..'")] : []),
  ]
}

/** Errors for a path with `..` parts. */
export function withoutParentSteps(path: string, value: string): StatusCause[] {
  return value.split('/').includes('..') ? [fieldInvalid(path, value, "must not contain '..'")] : []
}

/** Validates the permission bits of a file. */
export function fileMode(path: string, value: number | undefined): StatusCause[] {
  return value !== undefined && (value < 0 || value > 0o777)
    ? [fieldInvalid(path, value, 'must be a number between 0 and 0777 (octal), both inclusive')]
    : []
}

/** An Invalid error that prints a struct as Go does: `struct` must have its members in Go's order. */
export function invalidStruct(path: string, struct: object, detail: string): StatusCause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${JSON.stringify(struct)}: ${detail}`, field: path }
}
