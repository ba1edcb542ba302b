// Rules for single values, shared by many kinds. The messages are upstream's.
import { isIP } from 'node:net'
import {
  byteLength,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
  regexText,
} from '#apimachinery/field/index.ts'
import type { Int64 } from '#apimachinery/meta/index.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import { all, between, fields, maxBytes, must, nonEmpty, required, text, type Report, type Rule } from './vocabulary.ts'

export const protocols = ['SCTP', 'TCP', 'UDP'] as const
export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const

export const nonNegative = must((value: Int64) => value >= 0, 'must be greater than or equal to 0')
export const notBelowZero = must((value: Int64) => value >= 0, 'must be greater than or equal to zero')
export const positive = must((value: Int64) => value > 0, 'must be greater than zero')
export const portNumber = between(1, 65535)
/** The number of a port in Go's older validation of webhooks and API services. */
export const servicePort = must(
  (value: Int64) => value >= 1 && value <= 65535,
  'port is not valid: must be between 1 and 65535, inclusive',
)
/** The permission bits of a file. */
export const fileMode = must(
  (value: number) => value >= 0 && value <= 0o777,
  'must be a number between 0 and 0777 (octal), both inclusive',
)

export const subdomain = text(dns1123SubdomainErrors)
export const label = text(dns1123LabelErrors)
export const labelValue = text(labelValueErrors)
export const qualifiedName = text(qualifiedNameErrors)
/** A kind or a name as one segment of a URL path. */
export const pathSegment = text((value) => pathSegmentName(value, { prefix: false }))
/** The name of another object. */
export const objectName = required(subdomain)
export const secretReference = fields<{ name?: string; namespace?: string }>({
  name: required(subdomain),
  namespace: required(label),
})

/** A port name: an IANA service name (RFC 6335). */
export const portName = text(portNameErrors)

/** Errors for a port name. */
export function portNameErrors(name: string): string[] {
  const errors: string[] = []
  if (name.length > 15) errors.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)')
  if (name.includes('--')) errors.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen')
  return errors
}

/** A port number or port name. */
export const portOrName: Rule<number | string> = (value, report) => {
  if (typeof value === 'number') report.check(portNumber, value)
  else report.check(portName, value)
}

const pathText = regexText('Invalid path', "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+")

/** `DOMAIN/PATH`, such as the name of an ingress controller. */
export const domainPath = required((value: string, report: Report) => {
  const slash = value.indexOf('/')
  if (slash < 1 || slash === value.length - 1) {
    report.invalid('', value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    return
  }
  const rest = value.slice(slash + 1)
  report.check(subdomain, value.slice(0, slash))
  if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest)) report.invalid('', rest, pathText)
})

/** A map of labels. Errors have the path of the map. */
export const labels: Rule<Readonly<Record<string, string>> | undefined> = (values, report) => {
  for (const key in values) {
    report.check(qualifiedName, key)
    report.check(labelValue, values[key] ?? '')
  }
}

const maxAnnotationsBytes = 256 * 1024

/** A map of annotations: keys of any case, and a limited total size. */
export const annotations: Rule<Readonly<Record<string, string>> | undefined> = (values, report) => {
  let bytes = 0
  for (const key in values) {
    bytes += byteLength(key) + byteLength(values[key] ?? '')
    report.invalidFor('', key, qualifiedNameErrors(key.toLowerCase()))
  }
  if (bytes > maxAnnotationsBytes) report.tooLong('', maxAnnotationsBytes)
}

export const ipAddress = must(
  (value: string) => isIP(value) !== 0,
  'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
)

const isPercent = (value: string): boolean => /^[0-9]+%$/.test(value)
const percent = must(
  isPercent,
  regexText("a valid percent string must be a numeric string followed by an ending '%'", '[0-9]+%', '1%', '93%'),
)

/** A number that is not negative, or a percentage. */
export const intOrPercent: Rule<number | string | undefined> = (value, report) => {
  if (typeof value === 'number') report.check(nonNegative, value)
  else report.check(percent, value)
}

/** A percentage of at most 100. */
export const atMostAll = must(
  (value: number | string) => typeof value !== 'string' || !isPercent(value) || parseInt(value, 10) <= 100,
  'must not be greater than 100%',
)

/** True for zero, zero percent, absent and unparsable values. */
export function isZeroAmount(value: number | string | undefined): boolean {
  if (typeof value !== 'string') return value === undefined || value === 0
  return !/^[+-]?\d+%?$/.test(value) || parseInt(value, 10) === 0
}

/** A path without `..` steps. */
export const withoutParentSteps = must(
  (value: string) => !value.includes('..') || !value.split('/').includes('..'),
  "must not contain '..'",
)
/** A relative path without `..` steps. */
export const relativePathInside = all<string>(
  must((value) => !value.startsWith('/'), 'must be a relative path'),
  withoutParentSteps,
)
/** As `relativePathInside`; also refuses names that start with `..`, which the kubelet reserves. */
export const unreservedRelativePath = all<string>(
  relativePathInside,
  must((value) => !value.startsWith('..') || value.startsWith('../'), "must not start with '..'"),
)

export const isNegative = (quantity: string): boolean => quantityOf(quantity).nanos < 0n
export const nonNegativeQuantity = must((value: string) => !isNegative(value), 'must be greater than or equal to 0')
export const positiveQuantity = must((value: string) => quantityOf(value).nanos > 0n, 'must be greater than zero')
/** A quantity above -1; as upstream, the error prints the quantity as a number without its fraction. */
export const resourceQuantity: Rule<string> = (value, report) => {
  const { nanos } = quantityOf(value)
  if (nanos <= -1_000_000_000n) report.invalid('', Number(nanos / 1_000_000_000n), 'must be a valid resource quantity')
}

/** A driver name: at most 63 bytes, a DNS subdomain, upper case allowed. */
export const driverName = all<string>(
  nonEmpty(),
  maxBytes(63),
  text((name) => dns1123SubdomainErrors(name.toLowerCase())),
)
