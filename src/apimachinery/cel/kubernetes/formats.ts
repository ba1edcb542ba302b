// Named formats: format.dns1123Label().validate(text), format.named('uri').
import {
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '#apimachinery/field/index.ts'
import { formatCheck } from '#apimachinery/schema/index.ts'
import { type FunctionDeclaration, member, overload } from '#apimachinery/cel/declarations/declarations.ts'
import { listOf, optionalOf, stringType, structType } from '#apimachinery/cel/types/cel-type.ts'
import { ArrayList } from '#apimachinery/cel/values/collections.ts'
import { type CelError, CelObject, CelOptional, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'
import { urlError } from './urls.ts'

const formatType = structType('kubernetes.NamedFormat')

type Rule = (text: string) => readonly string[]

class FormatValue extends CelObject {
  readonly typeName = 'kubernetes.NamedFormat'
  readonly name: string
  readonly errors: Rule
  /** The length of the pattern that the cost of a validation is counted with. */
  readonly maxRegexSize: number

  constructor(name: string, maxRegexSize: number, errors: Rule) {
    super()
    this.name = name
    this.errors = errors
    this.maxRegexSize = maxRegexSize
  }

  override equalTo(other: Value): boolean | CelError {
    return other instanceof FormatValue ? this.name === other.name : noSuchOverload
  }
}

// Of a prefix for generated names the last dash does not count.
const ofPrefix =
  (rule: Rule): Rule =>
  (text) =>
    rule(text.length > 1 && text.endsWith('-') ? `${text.slice(0, -2)}a` : text)

const schemaFormat =
  (name: string, message: string): Rule =>
  (text) =>
    formatCheck(name)?.(text) === false ? [message] : []

const uri: Rule = (text) => {
  const error = urlError(text)
  return error === undefined ? [] : [error]
}

const formats: ReadonlyMap<string, FormatValue> = new Map(
  (
    [
      ['dns1123Label', 'DNS1123Label', 30, dns1123LabelErrors],
      ['dns1123Subdomain', 'DNS1123Subdomain', 60, dns1123SubdomainErrors],
      ['dns1035Label', 'DNS1035Label', 30, dns1035LabelErrors],
      ['qualifiedName', 'QualifiedName', 60, qualifiedNameErrors],
      ['dns1123LabelPrefix', 'DNS1123LabelPrefix', 30, ofPrefix(dns1123LabelErrors)],
      ['dns1123SubdomainPrefix', 'DNS1123SubdomainPrefix', 60, ofPrefix(dns1123SubdomainErrors)],
      ['dns1035LabelPrefix', 'DNS1035LabelPrefix', 30, ofPrefix(dns1035LabelErrors)],
      ['labelValue', 'LabelValue', 40, labelValueErrors],
      ['uri', 'URI', 1103, uri],
      ['uuid', 'uuid', 70, schemaFormat('uuid', 'does not match the UUID format')],
      ['byte', 'byte', 84, schemaFormat('byte', 'invalid base64')],
      ['date', 'date', 71, schemaFormat('date', 'invalid date')],
      ['datetime', 'datetime', 71, schemaFormat('datetime', 'invalid datetime')],
    ] as const
  ).map(([key, name, size, rule]) => [key, new FormatValue(name, size, rule)]),
)

function validate(format?: Value, text?: Value): Value {
  if (!(format instanceof FormatValue) || typeof text !== 'string') return noSuchOverload
  const errors = format.errors(text)
  return errors.length === 0 ? CelOptional.none : new CelOptional(new ArrayList(errors))
}

export const formatFunctions: readonly FunctionDeclaration[] = [
  {
    name: 'validate',
    overloads: [member('format-validate', [formatType, stringType], optionalOf(listOf(stringType)), validate)],
  },
  {
    name: 'format.named',
    overloads: [
      overload('format-named', [stringType], optionalOf(formatType), (name) => {
        const format = typeof name === 'string' ? formats.get(name) : undefined
        return format === undefined ? CelOptional.none : new CelOptional(format)
      }),
    ],
  },
  ...Array.from(formats, ([key, format]) => ({
    name: `format.${key}`,
    overloads: [overload(`format.${key}`, [], formatType, () => format)],
  })),
]
