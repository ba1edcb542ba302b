// A kind with a field for each way in which a schema takes a number.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { SampleCrd } from '#test/parity/crds/sample-crd.ts'

export const word = 'number'

const integer: JsonObject = { type: 'integer' }
const anything: JsonObject = { 'x-kubernetes-preserve-unknown-fields': true }
const rule = (text: string, value = 'string(self)'): JsonObject => ({ rule: text, messageExpression: value })

export const numbersSample: SampleCrd = {
  word,
  schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          any: anything,
          int: integer,
          int64: { ...integer, format: 'int64' },
          int32: { ...integer, format: 'int32' },
          number: { type: 'number' },
          float: { type: 'number', format: 'double' },
          intOrString: { 'x-kubernetes-int-or-string': true },
          bounded: { ...integer, minimum: -9007199254740993n, maximum: 4611686018427387904n },
          high: { type: 'number', minimum: 0.5, maximum: 1e18, exclusiveMaximum: true },
          multiple: { ...integer, multipleOf: 3 },
          half: { type: 'number', multipleOf: 0.5 },
          choice: { type: 'number', enum: [1, 0.5, 9007199254740992n, 1e21] },
          ruled: {
            ...integer,
            'x-kubernetes-validations': [
              rule('self + 1 != 9007199254740993'),
              rule('self < 9223372036854775806'),
              rule('self % 10 != 9'),
              rule('self >= 0 || uint(-(self + 1)) < 9223372036854775807u', '"uint"'),
              rule('double(self) != 9007199254740992.0', 'string(double(self))'),
              rule('self != 1234567890123456789'),
            ],
          },
          dynamic: { type: 'number', 'x-kubernetes-validations': [rule('self < 9007199254740993.0 && self != 1.0')] },
          set: { type: 'array', 'x-kubernetes-list-type': 'set', items: integer },
          map: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['id'],
            items: { type: 'object', required: ['id'], properties: { id: integer } },
          },
          picked: integer,
          filled: { ...integer, default: 4611686018427387905n },
        },
      },
    },
  },
  version: {
    additionalPrinterColumns: [
      { name: 'Set', type: 'integer', jsonPath: '.spec.set[0]' },
      { name: 'Id', type: 'string', jsonPath: '.spec.map[0].id' },
      { name: 'Any', type: 'string', jsonPath: '.spec.any' },
      { name: 'Filled', type: 'number', jsonPath: '.spec.filled' },
    ],
    selectableFields: [{ jsonPath: '.spec.picked' }],
  },
}
