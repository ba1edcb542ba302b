// The meaning of a YAML scalar in the Go library of kube-apiserver (go.yaml.in/yaml/v2): YAML 1.1 without sexagesimal
// numbers and timestamps, with Go's syntax of integers (`0o644`, `0b1`, `1_000`).
import { Buffer } from 'node:buffer'
import { integerOfText, type JsonValue } from '#apimachinery/meta/index.ts'

/** A resolved scalar. Its kind also determines how it is written as a key. */
export type Scalar =
  | { readonly kind: 'null' | 'merge' }
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'int'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }

const core = 'tag:yaml.org,2002:'
const named = new Map<string, Scalar>([
  ...words({ kind: 'bool', value: true }, 'y Y yes Yes YES true True TRUE on On ON'),
  ...words({ kind: 'bool', value: false }, 'n N no No NO false False FALSE off Off OFF'),
  ...words({ kind: 'null' }, '~ null Null NULL'),
  ['', { kind: 'null' }],
  ...words({ kind: 'float', value: NaN }, '.nan .NaN .NAN'),
  ...words({ kind: 'float', value: Infinity }, '.inf .Inf .INF +.inf +.Inf +.INF'),
  ...words({ kind: 'float', value: -Infinity }, '-.inf -.Inf -.INF'),
  ['<<', { kind: 'merge' }],
])

function words(scalar: Scalar, texts: string): [string, Scalar][] {
  return texts.split(' ').map((text) => [text, scalar])
}

/** The value of a scalar without quotes. */
export function plainScalar(text: string): Scalar {
  return named.get(text) ?? numberOf(text) ?? { kind: 'string', value: text }
}

/** The value of a scalar with an explicit tag. Throws an Error in Go's words if the scalar cannot have the tag. */
export function taggedScalar(tag: string, text: string): Scalar {
  const name = tag.startsWith(core) ? tag.slice(core.length) : ''
  if (!['null', 'bool', 'int', 'float', 'binary'].includes(name)) return { kind: 'string', value: text }
  if (name === 'binary') return { kind: 'string', value: bytesOf(text) }
  const scalar = plainScalar(text)
  if (scalar.kind === name) return scalar
  if (scalar.kind === 'int' && name === 'float') return { kind: 'float', value: Number(scalar.value) }
  const found = scalar.kind === 'string' ? 'str' : scalar.kind
  throw new Error(`cannot decode !!${found} \`${text}\` as a !!${name}`)
}

/** The JSON value of a scalar. Throws an Error for a number that JSON does not have. */
export function jsonOfScalar(scalar: Scalar): JsonValue {
  switch (scalar.kind) {
    case 'null':
      return null
    case 'merge':
      return '<<'
    case 'int':
      return integerOfText(String(scalar.value))
    case 'float':
      if (!Number.isFinite(scalar.value)) throw new Error(`json: unsupported value: ${goFloat(scalar.value)}`)
      return jsonOfFloat(scalar.value)
    default:
      return scalar.value
  }
}

/** The JSON value of a float. Go converts the document to JSON, in which a whole float is written as an integer. */
export function jsonOfFloat(value: number): JsonValue {
  const isWritten = Number.isInteger(value) && Math.abs(value) < 1e21 && !Object.is(value, -0)
  return isWritten ? integerOfText(String(value)) : value
}

/** The scalar as a key of a map. Throws for null. */
export function keyOfScalar(scalar: Scalar): string {
  switch (scalar.kind) {
    case 'null':
      throw new Error('unsupported map key of type: null')
    case 'merge':
      return '<<'
    case 'float':
      return float32Text(scalar.value)
    default:
      return String(scalar.value)
  }
}

const int = /^([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/
const float = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/
const fraction = /^\.[0-9]+(?:[eE][-+]?[0-9]+)?$/
const [minInt64, maxUint64] = [-(2n ** 63n), 2n ** 64n - 1n]
/** The most characters of a number. No real client sends longer numbers, and they are slow to read. */
const maxDigits = 400

function numberOf(text: string): Scalar | undefined {
  if (text.length > maxDigits || !/^[-+.0-9]/.test(text)) return undefined
  if (text.startsWith('.')) return fraction.test(text) ? finite(Number(text)) : undefined
  const plain = text.replaceAll('_', '')
  const value = intOf(plain)
  if (value !== undefined) return { kind: 'int', value }
  return float.test(plain) ? finite(Number(plain)) : undefined
}

function intOf(text: string): bigint | undefined {
  const [, sign = '', hex, binary, octal, decimal] = int.exec(text) ?? []
  const digits =
    hex === undefined
      ? binary === undefined
        ? octal === undefined
          ? decimal
          : `0o${octal}`
        : `0b${binary}`
      : `0x${hex}`
  if (digits === undefined) return undefined
  const value = sign === '-' ? -BigInt(digits) : BigInt(digits)
  // Go reads integers of more than 64 bits as floating-point numbers, if they have that syntax.
  return value < minInt64 || value > maxUint64 || (sign === '+' && value >= -minInt64) ? undefined : value
}

/** The float, or undefined if it is infinite: Go reads a number that no double can hold as text. */
function finite(value: number): Scalar | undefined {
  return Number.isFinite(value) ? { kind: 'float', value } : undefined
}

function bytesOf(text: string): string {
  const compact = text.replace(/[\r\n]/g, '')
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact))
    throw new Error('!!binary value contains invalid base64 data')
  return Buffer.from(compact, 'base64').toString('utf8')
}

function goFloat(value: number): string {
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

/** As strconv.FormatFloat(value, 'g', -1, 32) writes it, but infinities and NaN as in YAML. */
function float32Text(value: number): string {
  if (Number.isNaN(value)) return '.nan'
  const single = Math.fround(value)
  if (!Number.isFinite(single)) return single > 0 ? '.inf' : '-.inf'
  if (single === 0) return Object.is(single, -0) ? '-0' : '0'
  let shortest = ''
  for (let digits = 1; digits <= 9; digits++) {
    shortest = single.toExponential(digits - 1)
    if (Math.fround(Number(shortest)) === single) break
  }
  const [mantissa = '', power = ''] = shortest.split('e')
  const exponent = Number(power)
  if (exponent >= -4 && exponent < 6) return String(Number(shortest))
  const size = String(Math.abs(exponent)).padStart(2, '0')
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${size}`
}
