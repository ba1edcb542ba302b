// semver(), isSemver() and the methods of versions.
import { goQuote } from '#apimachinery/text/index.ts'
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import { boolType, type CelType, intType, stringType, structType } from '#apimachinery/cel/types/cel-type.ts'
import { checkedInt, maxUint64 } from '#apimachinery/cel/values/integers.ts'
import { CelError, CelObject, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'

const semverType = structType('kubernetes.Semver')

interface Version {
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly pre: readonly (bigint | string)[]
  readonly build: readonly string[]
}

class SemverValue extends CelObject {
  readonly typeName = 'kubernetes.Semver'
  readonly version: Version

  constructor(version: Version) {
    super()
    this.version = version
  }

  override equalTo(other: Value): boolean | CelError {
    return other instanceof SemverValue ? compareVersions(this.version, other.version) === 0 : noSuchOverload
  }

  get text(): string {
    const { numbers, pre, build } = this.version
    return (
      numbers.join('.') + (pre.length > 0 ? `-${pre.join('.')}` : '') + (build.length > 0 ? `+${build.join('.')}` : '')
    )
  }
}

function compareVersions(a: Version, b: Version): number {
  for (const [i, number] of a.numbers.entries()) {
    const other = b.numbers[i] ?? 0n
    if (number !== other) return number > other ? 1 : -1
  }
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length)
  for (let i = 0; i < Math.min(a.pre.length, b.pre.length); i++) {
    const [left, right] = [a.pre[i] ?? '', b.pre[i] ?? '']
    if (left === right) continue
    // Numbers come before names.
    if (typeof left !== typeof right) return typeof left === 'bigint' ? -1 : 1
    return left > right ? 1 : -1
  }
  return Math.sign(a.pre.length - b.pre.length)
}

const invalid = (message: string): Error => new Error(message)

function parseNumber(name: string, text: string): bigint {
  if (!/^\d*$/.test(text)) throw invalid(`Invalid character(s) found in ${name} number ${goQuote(text)}`)
  if (/^0\d/.test(text)) throw invalid(`${capital(name)} number must not contain leading zeroes ${goQuote(text)}`)
  if (text === '') throw invalid(`strconv.ParseUint: parsing "": invalid syntax`)
  const number = BigInt(text)
  if (number > maxUint64) throw invalid(`strconv.ParseUint: parsing ${goQuote(text)}: value out of range`)
  return number
}

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)

function parseVersion(text: string): Version {
  if (text === '') throw invalid('Version string empty')
  const [major = '', minor = '', ...rest] = text.split('.')
  if (rest.length === 0) throw invalid('No Major.Minor.Patch elements found')
  const last = rest.join('.')
  const numbers = [parseNumber('major', major), parseNumber('minor', minor)]
  const plus = last.indexOf('+')
  const build = plus < 0 ? [] : last.slice(plus + 1).split('.')
  const withoutBuild = plus < 0 ? last : last.slice(0, plus)
  const dash = withoutBuild.indexOf('-')
  const pre = dash < 0 ? [] : withoutBuild.slice(dash + 1).split('.')
  const patch = parseNumber('patch', dash < 0 ? withoutBuild : withoutBuild.slice(0, dash))
  const version: Version = { numbers: [numbers[0] ?? 0n, numbers[1] ?? 0n, patch], pre: pre.map(parsePre), build }
  for (const part of build) {
    if (part === '') throw invalid('Build meta data is empty')
    if (!/^[0-9A-Za-z-]+$/.test(part)) throw invalid(`Invalid character(s) found in build meta data ${goQuote(part)}`)
  }
  return version
}

function parsePre(text: string): bigint | string {
  if (text === '') throw invalid('Prerelease is empty')
  if (/^\d+$/.test(text)) {
    if (/^0\d/.test(text)) throw invalid(`Numeric PreRelease version must not contain leading zeroes ${goQuote(text)}`)
    return BigInt(text)
  }
  if (!/^[0-9A-Za-z-]+$/.test(text)) throw invalid(`Invalid character(s) found in prerelease ${goQuote(text)}`)
  return text
}

// `v01.2` is read as `1.2.0`.
function normalized(text: string): string {
  const [first = '', second, ...rest] = text.replace(/^v/, '').split('.')
  const parts = second === undefined ? [first] : rest.length === 0 ? [first, second] : [first, second, rest.join('.')]
  const trimmed = parts.map((part) => {
    if (part.length < 2) return part
    const short = part.replace(/^0+/, '')
    return /^[0-9]/.test(short) ? short : `0${short}`
  })
  if (trimmed.length < 3 && /[+-]/.test(trimmed.at(-1) ?? ''))
    throw invalid('short version cannot contain PreRelease/Build meta data')
  while (trimmed.length < 3) trimmed.push('0')
  return trimmed.join('.')
}

function read(text: Value | undefined, normalize: Value = false): Value {
  if (typeof text !== 'string') return noSuchOverload
  try {
    return new SemverValue(parseVersion(normalize === true ? normalized(text) : text))
  } catch (error) {
    return new CelError(error instanceof Error ? error.message : '')
  }
}

const isSemver: Implementation = (text, normalize) => !(read(text, normalize) instanceof CelError)

function method(
  name: string,
  id: string,
  params: readonly CelType[],
  result: CelType,
  run: (a: Version, b: Version) => Value,
): FunctionDeclaration {
  const implementation: Implementation = (a, b = a) =>
    a instanceof SemverValue && b instanceof SemverValue ? run(a.version, b.version) : noSuchOverload
  return { name, overloads: [member(id, [semverType, ...params], result, implementation)] }
}

const other = [semverType]

export const semverFunctions: readonly FunctionDeclaration[] = [
  {
    name: 'semver',
    overloads: [
      overload('string_to_semver', [stringType], semverType, (text) => read(text)),
      overload('string_bool_to_semver', [stringType, boolType], semverType, read),
    ],
  },
  {
    name: 'isSemver',
    overloads: [
      overload('is_semver_string', [stringType], boolType, isSemver),
      overload('is_semver_string_bool', [stringType, boolType], boolType, isSemver),
    ],
  },
  method('isGreaterThan', 'semver_is_greater_than', other, boolType, (a, b) => compareVersions(a, b) === 1),
  method('isLessThan', 'semver_is_less_than', other, boolType, (a, b) => compareVersions(a, b) === -1),
  method('compareTo', 'semver_compare_to', other, intType, compareVersions),
  method('major', 'semver_major', [], intType, ({ numbers }) => checkedInt(BigInt.asIntN(64, numbers[0]))),
  method('minor', 'semver_minor', [], intType, ({ numbers }) => checkedInt(BigInt.asIntN(64, numbers[1]))),
  method('patch', 'semver_patch', [], intType, ({ numbers }) => checkedInt(BigInt.asIntN(64, numbers[2]))),
]
