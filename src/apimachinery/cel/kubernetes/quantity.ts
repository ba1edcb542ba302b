// quantity(), isQuantity() and the methods of quantities.
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import {
  boolType,
  type CelType,
  doubleType,
  intType,
  stringType,
  structType,
} from '#apimachinery/cel/types/cel-type.ts'
import { CelDouble, CelError, isInt, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'
import { parseQuantity, quantityOfInt, QuantityValue } from './quantity-value.ts'

const quantityType = structType('kubernetes.Quantity')

const ofQuantity =
  (run: (quantity: QuantityValue) => Value): Implementation =>
  (value) =>
    value instanceof QuantityValue ? run(value) : noSuchOverload

const ofTwo =
  (run: (a: QuantityValue, b: QuantityValue) => Value): Implementation =>
  (a = null, b = null) => {
    const other = isInt(b) ? quantityOfInt(b) : b
    return a instanceof QuantityValue && other instanceof QuantityValue ? run(a, other) : noSuchOverload
  }

const order = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

function method(
  name: string,
  id: string,
  params: readonly CelType[],
  result: CelType,
  run: Implementation,
): FunctionDeclaration {
  return { name, overloads: [member(id, [quantityType, ...params], result, run)] }
}

const other = [quantityType]

function sum(name: 'add' | 'sub', sign: 1n | -1n): FunctionDeclaration {
  const run = ofTwo((a, b) => a.plus(b, sign))
  return {
    name,
    overloads: [
      member(`quantity_${name}`, [quantityType, quantityType], quantityType, run),
      member(`quantity_${name}_int`, [quantityType, intType], quantityType, run),
    ],
  }
}

export const quantityFunctions: readonly FunctionDeclaration[] = [
  {
    name: 'quantity',
    overloads: [
      overload('string_to_quantity', [stringType], quantityType, (text) =>
        typeof text === 'string' ? parseQuantity(text) : noSuchOverload,
      ),
    ],
  },
  {
    name: 'isQuantity',
    overloads: [
      overload('is_quantity_string', [stringType], boolType, (text) =>
        typeof text === 'string' ? !(parseQuantity(text) instanceof CelError) : noSuchOverload,
      ),
    ],
  },
  {
    name: 'sign',
    overloads: [
      overload(
        'quantity_sign',
        [quantityType],
        intType,
        ofQuantity(({ nanos }) => order(nanos, 0n)),
      ),
    ],
  },
  method(
    'isGreaterThan',
    'quantity_is_greater_than',
    other,
    boolType,
    ofTwo((a, b) => a.nanos > b.nanos),
  ),
  method(
    'isLessThan',
    'quantity_is_less_than',
    other,
    boolType,
    ofTwo((a, b) => a.nanos < b.nanos),
  ),
  method(
    'compareTo',
    'quantity_compare_to',
    other,
    intType,
    ofTwo((a, b) => order(a.nanos, b.nanos)),
  ),
  method(
    'asApproximateFloat',
    'quantity_get_float',
    [],
    doubleType,
    ofQuantity((quantity) => new CelDouble(quantity.asDouble())),
  ),
  method(
    'asInteger',
    'quantity_get_int',
    [],
    intType,
    ofQuantity((quantity) => quantity.asInt() ?? new CelError('cannot convert value to integer')),
  ),
  method(
    'isInteger',
    'quantity_is_integer',
    [],
    boolType,
    ofQuantity((quantity) => quantity.asInt() !== undefined),
  ),
  sum('add', 1n),
  sum('sub', -1n),
]
