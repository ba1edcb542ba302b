// String formats that kube-apiserver enforces in schemas of custom resources. Dashes in a format's name do not count;
// unknown formats are ignored, as upstream does.
import { isIP } from 'node:net'
import { RE2JS } from 're2js'
import { parseRequestUri } from '#apimachinery/text/index.ts'
import { isEmail } from './email-format.ts'
import { dns1123LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'

type Check = (value: string) => boolean

const uuid =
  (pattern: RegExp): Check =>
  (value) =>
    pattern.test(value)
const isMatch =
  (pattern: RegExp): Check =>
  (value) =>
    pattern.test(value)

const checks: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['bsonobjectid', isMatch(/^[0-9a-fA-F]{24}$/)],
  ['byte', isMatch(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/)],
  ['cidr', isCidr],
  ['creditcard', isCreditCard],
  ['date', isDate],
  ['datetime', isDateTime],
  ['duration', isDuration],
  ['email', isEmail],
  ['hexcolor', isMatch(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ['hostname', isHostname],
  ['ipv4', (value) => value.includes('.') && ipFamily(value) !== 0],
  ['ipv6', (value) => isIP(value) === 6 && !value.includes('%')],
  ['isbn', (value) => isIsbn10(value) || isIsbn13(value)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['mac', isMac],
  ['password', () => true],
  ['rgbcolor', isRgbColor],
  ['ssn', isMatch(/^\d{3}[- ]\d{2}[- ]\d{4}$/)],
  ['uri', isUri],
  ['uuid', uuid(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid3', uuid(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid4', uuid(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['uuid5', uuid(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['k8sshortname', (value) => dns1123LabelErrors(value).length === 0],
  ['k8slongname', (value) => dns1123SubdomainErrors(value).length === 0],
])

/** The check of a format, or undefined if the format is not enforced. */
export function formatCheck(format: string): Check | undefined {
  return checks.get(format.includes('-') ? format.replaceAll('-', '') : format)
}

function isDate(value: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(value)
  if (match === null) return false
  const [year, month, day] = match.slice(1).map(Number)
  if (year === undefined || month === undefined || day === undefined || month < 1 || month > 12) return false
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  return day >= 1 && day <= ([31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0)
}

function isDateTime(value: string): boolean {
  const [date, time] = value.toLowerCase().split('t')
  if (date === undefined || time === undefined || !isDate(date)) return false
  const match = /^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$/.exec(time)
  return match !== null && Number(match[1]) <= 23 && Number(match[2]) <= 59 && Number(match[3]) <= 59
}

const durationUnits = /^(ns|us|µs|ms|s|m|h|hr|d|w|wk|(nano|micro|milli|sec|min|hour|day|week).*)$/

function isDuration(value: string): boolean {
  if (/^[+-]?0$/.test(value) || /^[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(value))
    return true
  // The lookbehind keeps a match from starting inside a number, which would make a long number quadratic.
  for (const [, unit = ''] of value.matchAll(/(?<![0-9])[0-9]+\s*([A-Za-zµ]+)/g))
    if (durationUnits.test(unit.toLowerCase())) return true
  return false
}

function isCidr(value: string): boolean {
  const slash = value.lastIndexOf('/')
  const family = ipFamily(value.slice(0, slash))
  const bits = value.slice(slash + 1)
  return slash > 0 && family !== 0 && /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

/** 4 or 6 for an IP address, else 0. Go accepts leading zeros, but no zone. */
function ipFamily(value: string): number {
  return value.includes('%') ? 0 : isIP(value.replace(/(^|[.:])0+(?=[0-9]+\.)|(\.)0+(?=[0-9])/g, '$1$2'))
}

function isMac(value: string): boolean {
  const groups = value.split(value.includes(':') ? ':' : value.includes('-') ? '-' : '.')
  const pairs = !value.includes('.')
  if (!groups.every((group) => (pairs ? /^[0-9a-f]{2}$/i : /^[0-9a-f]{4}$/i).test(group))) return false
  return (pairs ? [6, 8, 20] : [3, 4, 10]).includes(groups.length)
}

function isUri(value: string): boolean {
  try {
    parseRequestUri(value)
    return true
  } catch {
    return false
  }
}

let hostnamePattern: RE2JS | undefined

function isHostname(value: string): boolean {
  if (Buffer.byteLength(value) > 255) return false
  // Uses RE2, which runs in linear time, because the pattern has nested repetitions.
  hostnamePattern ??= RE2JS.compile(
    '^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}([a-zA-Z\\p{L}]){2,63})$',
  )
  return hostnamePattern.matcher(value).find() && value.split('.').every((part) => Buffer.byteLength(part) <= 63)
}

function isRgbColor(value: string): boolean {
  const match = /^rgb\(\s*(0|[1-9]\d{0,2})\s*,\s*(0|[1-9]\d{0,2})\s*,\s*(0|[1-9]\d{0,2})\s*\)$/.exec(value)
  return match?.slice(1).every((part) => Number(part) <= 255) ?? false
}

function isIsbn10(value: string): boolean {
  const digits = value.replace(/[\s-]+/g, '')
  if (!/^[0-9]{9}[0-9X]$/.test(digits)) return false
  const sum = [...digits.matchAll(/./g)].reduce(
    (total, [digit], i) => total + (10 - i) * (digit === 'X' ? 10 : Number(digit)),
    0,
  )
  return sum % 11 === 0
}

function isIsbn13(value: string): boolean {
  const digits = value.replace(/[\s-]+/g, '')
  if (!/^[0-9]{13}$/.test(digits)) return false
  return (
    [...digits.matchAll(/./g)].reduce((total, [digit], i) => total + (i % 2 === 0 ? 1 : 3) * Number(digit), 0) % 10 ===
    0
  )
}

function isCreditCard(value: string): boolean {
  const digits = value.replace(/[^0-9]+/g, '')
  if (
    !/^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/.test(
      digits,
    )
  )
    return false
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    const counted = i % 2 === 1 ? digit * 2 : digit
    sum += counted > 9 ? counted - 9 : counted
  }
  return sum % 10 === 0
}
